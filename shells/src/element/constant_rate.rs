//! A link of constant rate, serialised byte by byte, behind a queue.

use std::collections::VecDeque;

use super::{Departure, Element};
use crate::packet::Packet;
use crate::queue::Queue;
use crate::time::{NANOS_PER_SECOND, Nanos};

/// Sends one packet at a time; a packet of n bytes (IP length) takes 8n / rate.
///
/// The packet being sent has left the queue: a queue's limit counts only the packets that wait.
pub struct ConstantRate {
    rate_bps: u64,
    queue: Box<dyn Queue>,
    busy: Option<Busy>,
    sent: VecDeque<Departure>,
}

/// A stretch of time in which the link never rests.
///
/// Ends of packets are computed from its start, so that rounding to nanoseconds never adds up.
struct Busy {
    since: Nanos,
    /// Bits sent since then, including the packet that is being sent.
    bits: u128,
    sending: Packet,
}

impl ConstantRate {
    #[must_use]
    pub fn new(rate_bps: u64, queue: Box<dyn Queue>) -> Self {
        assert!(rate_bps > 0, "a link of rate 0 never sends");
        Self {
            rate_bps,
            queue,
            busy: None,
            sent: VecDeque::new(),
        }
    }

    /// When the last bit of the packet being sent leaves, rounded up.
    fn end(&self, busy: &Busy) -> Nanos {
        let span = (busy.bits * u128::from(NANOS_PER_SECOND)).div_ceil(u128::from(self.rate_bps));
        busy.since + span as Nanos
    }

    /// Bring the link up to `now`: finish what ends by then, start what follows.
    fn advance(&mut self, now: Nanos) {
        while let Some(busy) = self.busy.take() {
            let end = self.end(&busy);
            if end > now {
                self.busy = Some(busy);
                return;
            }
            self.sent.push_back(Departure {
                packet: busy.sending,
                at: end,
            });
            if let Some(next) = self.queue.dequeue(end) {
                let bits = busy.bits + bits(&next);
                self.busy = Some(Busy {
                    since: busy.since,
                    bits,
                    sending: next,
                });
            }
        }
    }

    fn start_if_idle(&mut self, now: Nanos) {
        if self.busy.is_none() {
            self.busy = self.queue.dequeue(now).map(|first| Busy {
                since: now,
                bits: bits(&first),
                sending: first,
            });
        }
    }
}

fn bits(packet: &Packet) -> u128 {
    packet.ip_length() as u128 * 8
}

impl Element for ConstantRate {
    fn push(&mut self, packet: Packet, now: Nanos) {
        self.advance(now);
        for segment in packet.into_segments() {
            self.queue.enqueue(segment, now);
            self.start_if_idle(now);
        }
    }

    fn pop(&mut self, now: Nanos) -> Option<Departure> {
        self.advance(now);
        self.sent.pop_front()
    }

    fn next_due(&self) -> Option<Nanos> {
        match self.sent.front() {
            Some(departure) => Some(departure.at),
            None => self.busy.as_ref().map(|busy| self.end(busy)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::{DropTail, Infinite, Limit};

    fn departures(link: &mut ConstantRate, now: Nanos) -> Vec<Nanos> {
        std::iter::from_fn(|| link.pop(now))
            .map(|departure| departure.at)
            .collect()
    }

    #[test]
    fn a_full_packet_at_0_468_mbit_takes_25_64_ms() {
        let mut link = ConstantRate::new(468_000, Box::new(Infinite::default()));
        link.push(Packet::new(&[0; 1500]), 0);
        assert_eq!(link.next_due(), Some(25_641_026));
        assert_eq!(departures(&mut link, 25_641_025), []);
        assert_eq!(departures(&mut link, 25_641_026), [25_641_026]);
    }

    #[test]
    fn a_busy_link_loses_no_time_to_rounding_or_to_being_asked_late() {
        let mut link = ConstantRate::new(3_000_000_000, Box::new(Infinite::default()));
        for _ in 0..3_000_000 {
            link.push(Packet::new(&[0; 20]), 0);
        }
        assert_eq!(departures(&mut link, NANOS_PER_SECOND).last(), Some(&160_000_000));
    }

    #[test]
    fn the_packet_being_sent_does_not_count_against_the_queue() {
        let mut link = ConstantRate::new(8_000_000, Box::new(DropTail::new(Limit::bytes(2000))));
        for _ in 0..4 {
            link.push(Packet::new(&[0; 1000]), 0);
        }
        assert_eq!(
            departures(&mut link, NANOS_PER_SECOND),
            [1_000_000, 2_000_000, 3_000_000]
        );
    }

    #[test]
    fn after_a_rest_the_link_starts_at_once() {
        let mut link = ConstantRate::new(8_000_000, Box::new(Infinite::default()));
        link.push(Packet::new(&[0; 1000]), 0);
        link.push(Packet::new(&[0; 1000]), 5_000_000);
        assert_eq!(departures(&mut link, NANOS_PER_SECOND), [1_000_000, 6_000_000]);
    }
}
