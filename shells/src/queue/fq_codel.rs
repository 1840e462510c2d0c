//! FQ-CoDel (RFC 8290): flows take turns, each with its own CoDel.

use std::collections::VecDeque;

use super::backlog::Backlog;
use super::codel::{CoDelSettings, ECN, INTERVAL, Law, TARGET};
use super::{Limit, Parameter, Queue, QueueKind, QueueParts, Waiting};
use crate::error::{Error, Result};
use crate::packet::{FULL_PACKET_BYTES, Packet};
use crate::time::Nanos;

/// The name, the arguments and the constructor.
pub const KIND: QueueKind = QueueKind {
    name: "fq_codel",
    summary: "Lets flows take turns, each with a CoDel of its own (RFC 8290)",
    has_limit: true,
    parameters: &[TARGET, INTERVAL, ECN, Parameter::number("flows")],
    build,
};

/// Flows and packets by default (RFC 8290, 5.2).
const DEFAULT_FLOWS: f64 = 1024.0;
const DEFAULT_PACKETS: usize = 10_240;

/// Bytes a flow may send in its turn: one packet (RFC 8290, 5.2.3).
const QUANTUM: i64 = FULL_PACKET_BYTES as i64;

/// The most packets dropped at once from the longest flow when the queue is full (RFC 8290, 4.1).
const DROP_BATCH: usize = 64;

fn build(parts: QueueParts<'_>) -> Result<Box<dyn Queue>> {
    let flows = parts.arguments.number("flows")?.unwrap_or(DEFAULT_FLOWS);
    if !(1.0..=65_536.0).contains(&flows) {
        return Err(Error::new("the queue argument flows is from 1 to 65536"));
    }
    let default_limit = Limit::packets(DEFAULT_PACKETS).counting_header(parts.link.header_bytes);
    let limit = parts.limit.unwrap_or(default_limit);
    Ok(Box::new(FqCoDel::new(CoDelSettings::from_arguments(parts.arguments)?, flows as usize, limit)))
}

/// One FQ-CoDel queue. Packets share a flow when their addresses, protocol and ports have the same hash.
pub struct FqCoDel {
    limit: Limit,
    flows: Vec<Flow>,
    /// Indexes of the flows that have just begun, and of those that have had a turn.
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    packets: usize,
    bytes: usize,
}

struct Flow {
    backlog: Backlog,
    law: Law,
    deficit: i64,
    is_listed: bool,
}

impl FqCoDel {
    /// A queue of this many flows, which share the limit.
    #[must_use]
    pub fn new(settings: CoDelSettings, flows: usize, limit: Limit) -> Self {
        let flow = |_| Flow {
            backlog: Backlog::new(limit.without_bounds()),
            law: Law::new(settings),
            deficit: 0,
            is_listed: false,
        };
        let flows = (0..flows.max(1)).map(flow).collect();
        Self { limit, flows, new: VecDeque::new(), old: VecDeque::new(), packets: 0, bytes: 0 }
    }

    /// The flow whose turn it is, and whether it is a new one.
    fn turn(&self) -> Option<(usize, bool)> {
        let first = |list: &VecDeque<usize>| list.front().copied();
        first(&self.new).map(|index| (index, true)).or_else(|| first(&self.old).map(|index| (index, false)))
    }

    /// Take the flow whose turn it is off its list.
    fn end_turn(&mut self, is_new: bool) {
        if is_new {
            self.new.pop_front()
        } else {
            self.old.pop_front()
        };
    }

    fn uncount(&mut self, packet: &Packet) {
        self.packets -= 1;
        self.bytes -= self.limit.size(packet);
    }

    /// Drop from the front of the flow with the most bytes, up to half of them.
    fn drop_from_longest(&mut self, dropped: &mut Vec<Packet>) {
        let Some(index) = (0..self.flows.len()).max_by_key(|index| self.flows[*index].backlog.bytes()) else {
            return;
        };
        let half = self.flows[index].backlog.bytes() / 2;
        for _ in 0..DROP_BATCH {
            let Some(oldest) = self.flows[index].backlog.pop() else { return };
            self.uncount(&oldest.packet);
            dropped.push(oldest.packet);
            if self.flows[index].backlog.bytes() <= half {
                return;
            }
        }
    }
}

impl Queue for FqCoDel {
    fn enqueue(&mut self, waiting: Waiting, dropped: &mut Vec<Packet>) {
        let index = (flow_hash(waiting.packet.bytes()) % self.flows.len() as u64) as usize;
        self.packets += 1;
        self.bytes += self.limit.size(&waiting.packet);
        let flow = &mut self.flows[index];
        flow.backlog.push(waiting);
        if !flow.is_listed {
            flow.is_listed = true;
            flow.deficit = QUANTUM;
            self.new.push_back(index);
        }
        while !self.limit.allows(self.packets, self.bytes) {
            self.drop_from_longest(dropped);
        }
    }

    fn dequeue(&mut self, now: Nanos, dropped: &mut Vec<Packet>) -> Option<Waiting> {
        loop {
            let (index, is_new) = self.turn()?;
            let flow = &mut self.flows[index];
            if flow.deficit <= 0 {
                flow.deficit += QUANTUM;
                self.end_turn(is_new);
                self.old.push_back(index);
                continue;
            }
            let before = dropped.len();
            let sent = flow.law.dequeue(&mut flow.backlog, now, dropped);
            for victim in &dropped[before..] {
                self.uncount(victim);
            }
            if let Some(waiting) = sent {
                self.flows[index].deficit -= self.limit.size(&waiting.packet) as i64;
                self.uncount(&waiting.packet);
                return Some(waiting);
            }
            // A new flow that becomes empty waits after the old ones once, so that it is not immediately new again.
            self.end_turn(is_new);
            if is_new && !self.old.is_empty() {
                self.old.push_back(index);
            } else {
                self.flows[index].is_listed = false;
            }
        }
    }

    fn is_empty(&self) -> bool {
        self.packets == 0
    }
}

/// A hash of what distinguishes flows: addresses, protocol and, if the protocol has them, ports.
fn flow_hash(packet: &[u8]) -> u64 {
    let (tcp, udp) = (6, 17);
    let (addresses, protocol, header) = match packet.first().map(|first| first >> 4) {
        Some(4) => (packet.get(12..20), packet.get(9), usize::from(packet[0] & 0x0f) * 4),
        Some(6) => (packet.get(8..40), packet.get(6), 40),
        _ => (None, None, 0),
    };
    let has_ports = protocol.is_some_and(|number| *number == tcp || *number == udp);
    let ports = packet.get(header..header + 4).filter(|_| has_ports);
    let words = addresses.into_iter().chain(ports).flatten().chain(protocol);
    // FNV-1a, with a final step that spreads its high bits.
    let hash = words
        .fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3));
    hash ^ (hash >> 32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::NANOS_PER_MILLISECOND;

    /// A UDP packet of this length from this port.
    fn packet(port: u16, length: usize) -> Packet {
        let mut bytes = vec![0; length];
        bytes[0] = 0x45;
        bytes[9] = 17;
        bytes[20..22].copy_from_slice(&port.to_be_bytes());
        Packet::new(&bytes)
    }

    fn port(packet: &Packet) -> u16 {
        u16::from_be_bytes([packet.bytes()[20], packet.bytes()[21]])
    }

    fn queue(limit: Limit) -> FqCoDel {
        FqCoDel::new(CoDelSettings::default(), 1024, limit)
    }

    fn ports_out(queue: &mut FqCoDel) -> Vec<u16> {
        std::iter::from_fn(|| queue.dequeue(0, &mut Vec::new())).map(|sent| port(&sent.packet)).collect()
    }

    #[test]
    fn flows_take_turns_and_a_new_one_goes_first() {
        let mut queue = queue(Limit::default());
        let mut dropped = Vec::new();
        for _ in 0..4 {
            queue.enqueue(Waiting { packet: packet(1, 1500), arrived: 0 }, &mut dropped);
        }
        let first = queue.dequeue(0, &mut dropped).unwrap();
        let second = queue.dequeue(0, &mut dropped).unwrap();
        assert_eq!((port(&first.packet), port(&second.packet)), (1, 1));
        for _ in 0..2 {
            queue.enqueue(Waiting { packet: packet(2, 1500), arrived: 0 }, &mut dropped);
        }
        assert_eq!(ports_out(&mut queue)[..2], [2, 2]);
        assert!(queue.is_empty() && dropped.is_empty());
    }

    #[test]
    fn two_flows_share_evenly_by_bytes() {
        let mut queue = queue(Limit::default());
        let mut dropped = Vec::new();
        for _ in 0..300 {
            queue.enqueue(Waiting { packet: packet(1, 1500), arrived: 0 }, &mut dropped);
            queue.enqueue(Waiting { packet: packet(2, 300), arrived: 0 }, &mut dropped);
        }
        let out = &ports_out(&mut queue)[..180];
        let large = out.iter().filter(|port| **port == 1).count();
        assert!((28..=32).contains(&large), "{large} of 1500 bytes beside {} of 300", out.len() - large);
    }

    #[test]
    fn a_full_queue_drops_from_the_longest_flow() {
        let mut queue = queue(Limit::packets(10));
        let mut dropped = Vec::new();
        queue.enqueue(Waiting { packet: packet(2, 100), arrived: 0 }, &mut dropped);
        for _ in 0..10 {
            queue.enqueue(Waiting { packet: packet(1, 1500), arrived: 0 }, &mut dropped);
        }
        assert!(!dropped.is_empty() && dropped.iter().all(|packet| port(packet) == 1));
        let sent = ports_out(&mut queue);
        assert_eq!(sent.len() + dropped.len(), 11);
        assert!(sent.contains(&2));
    }

    #[test]
    fn each_flow_has_a_codel_of_its_own() {
        let mut queue = queue(Limit::default());
        let mut dropped = Vec::new();
        for millisecond in 0..1000 {
            let now = millisecond * NANOS_PER_MILLISECOND;
            for _ in 0..2 {
                queue.enqueue(Waiting { packet: packet(1, 1500), arrived: now }, &mut dropped);
            }
            if millisecond % 10 == 0 {
                queue.enqueue(Waiting { packet: packet(2, 100), arrived: now }, &mut dropped);
            }
            assert!(queue.dequeue(now, &mut dropped).is_some());
        }
        assert!(dropped.len() > 10 && dropped.iter().all(|packet| port(packet) == 1));
    }
}
