//! A constant delay of any number of packets.

use std::collections::VecDeque;

use super::{Departure, Element};
use crate::packet::Packet;
use crate::time::Nanos;

/// Gives every packet up a fixed span after it arrived.
#[derive(Debug)]
pub struct Delay {
    delay: Nanos,
    waiting: VecDeque<Departure>,
}

impl Delay {
    #[must_use]
    pub fn new(delay: Nanos) -> Self {
        Self {
            delay,
            waiting: VecDeque::new(),
        }
    }
}

impl Element for Delay {
    fn push(&mut self, packet: Packet, now: Nanos) {
        self.waiting.push_back(Departure {
            packet,
            at: now + self.delay,
        });
    }

    fn pop(&mut self, now: Nanos) -> Option<Departure> {
        if self.next_due()? > now {
            return None;
        }
        self.waiting.pop_front()
    }

    fn next_due(&self) -> Option<Nanos> {
        self.waiting.front().map(|departure| departure.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_leaves_exactly_one_delay_after_it_arrived() {
        let mut delay = Delay::new(37_000_000);
        let packet = Packet::new(&[0; 100]);
        delay.push(packet.clone(), 5);
        assert_eq!(delay.next_due(), Some(37_000_005));
        assert_eq!(delay.pop(37_000_004), None);
        assert_eq!(
            delay.pop(40_000_000),
            Some(Departure {
                packet,
                at: 37_000_005
            })
        );
        assert_eq!(delay.next_due(), None);
    }
}
