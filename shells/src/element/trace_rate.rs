//! A link whose delivery opportunities come from a trace, with Mahimahi's meaning.

use std::collections::VecDeque;
use std::sync::Arc;

use super::{Departure, Element};
use crate::packet::Packet;
use crate::queue::Queue;
use crate::time::Nanos;
use crate::trace::{OPPORTUNITY_BYTES, TUN_HEADER_BYTES, Trace};

/// Sends [`OPPORTUNITY_BYTES`] at each opportunity of a trace, as whole packets leave only when their last
/// byte has been sent. What an opportunity has left when the queue runs empty is lost.
///
/// Packets count IP length + 4 against an opportunity. A packet leaves the queue when its first byte is
/// sent, so a queue's limit does not count a packet that is partly sent.
pub struct TraceRate {
    trace: Arc<Trace>,
    /// When the trace began.
    start: Nanos,
    /// The first opportunity not used yet.
    next: u64,
    queue: Box<dyn Queue>,
    /// A packet that is partly sent, and its bytes still to send.
    sending: Option<(Packet, usize)>,
    sent: VecDeque<Departure>,
}

impl TraceRate {
    #[must_use]
    pub fn new(trace: Arc<Trace>, start: Nanos, queue: Box<dyn Queue>) -> Self {
        Self {
            trace,
            start,
            next: 0,
            queue,
            sending: None,
            sent: VecDeque::new(),
        }
    }

    fn next_opportunity(&self) -> Nanos {
        self.start + self.trace.opportunity(self.next)
    }

    fn rests(&self) -> bool {
        self.sending.is_none() && self.queue.is_empty()
    }

    /// Bring the link up to `now`: use every opportunity until then.
    fn advance(&mut self, now: Nanos) {
        while !self.rests() && self.next_opportunity() <= now {
            let at = self.next_opportunity();
            self.next += 1;
            self.use_opportunity(at);
        }
        if self.rests() {
            self.next = self.next.max(self.trace.first_after(now - self.start));
        }
    }

    fn use_opportunity(&mut self, at: Nanos) {
        let mut bytes = OPPORTUNITY_BYTES;
        while bytes > 0 {
            let waiting = || {
                self.queue
                    .dequeue(at)
                    .map(|packet| (counted_bytes(&packet), packet))
            };
            let Some((left, packet)) = self
                .sending
                .take()
                .map(|(packet, left)| (left, packet))
                .or_else(waiting)
            else {
                return;
            };
            if left > bytes {
                self.sending = Some((packet, left - bytes));
                return;
            }
            bytes -= left;
            self.sent.push_back(Departure { packet, at });
        }
    }
}

fn counted_bytes(packet: &Packet) -> usize {
    packet.ip_length() + TUN_HEADER_BYTES
}

impl Element for TraceRate {
    fn push(&mut self, packet: Packet, now: Nanos) {
        self.advance(now);
        for segment in packet.into_segments() {
            self.queue.enqueue(segment, now);
        }
    }

    fn pop(&mut self, now: Nanos) -> Option<Departure> {
        self.advance(now);
        self.sent.pop_front()
    }

    fn next_due(&self) -> Option<Nanos> {
        match self.sent.front() {
            Some(departure) => Some(departure.at),
            None if self.rests() => None,
            None => Some(self.next_opportunity()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Infinite;
    use crate::time::NANOS_PER_MILLISECOND;

    fn link(trace: &str) -> TraceRate {
        TraceRate::new(
            Arc::new(Trace::parse(trace, "test").unwrap()),
            0,
            Box::new(Infinite::default()),
        )
    }

    fn departures_ms(link: &mut TraceRate, now_ms: Nanos) -> Vec<Nanos> {
        let now = now_ms * NANOS_PER_MILLISECOND;
        std::iter::from_fn(|| link.pop(now))
            .map(|departure| departure.at / NANOS_PER_MILLISECOND)
            .collect()
    }

    #[test]
    fn an_opportunity_takes_one_full_packet() {
        let mut link = link("2\n5\n5\n");
        for _ in 0..4 {
            link.push(Packet::new(&[0; 1500]), 0);
        }
        assert_eq!(departures_ms(&mut link, 7), [2, 5, 5, 7]);
        assert_eq!(link.next_due(), None);
    }

    #[test]
    fn small_packets_share_an_opportunity_and_large_ones_spread_over_several() {
        let mut link = link("1");
        for length in [748, 748, 1000, 1000, 1000] {
            link.push(Packet::new(&vec![0; length]), 0);
        }
        assert_eq!(departures_ms(&mut link, 9), [1, 1, 2, 3, 4]);
    }

    #[test]
    fn opportunities_that_nobody_used_are_gone() {
        let mut link = link("1\n1\n1\n10");
        link.push(Packet::new(&[0; 1500]), NANOS_PER_MILLISECOND);
        assert_eq!(link.next_due(), Some(10 * NANOS_PER_MILLISECOND));
        link.push(Packet::new(&[0; 1500]), 10 * NANOS_PER_MILLISECOND);
        assert_eq!(departures_ms(&mut link, 30), [10, 11]);
    }
}
