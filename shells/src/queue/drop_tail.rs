//! A queue that drops what arrives when it is full.

use std::collections::VecDeque;

use super::{Limit, Queue};
use crate::packet::Packet;
use crate::time::Nanos;

/// Drops an arriving packet that would exceed the limit.
#[derive(Debug)]
pub struct DropTail {
    limit: Limit,
    waiting: VecDeque<Packet>,
    bytes: usize,
}

impl DropTail {
    #[must_use]
    pub fn new(limit: Limit) -> Self {
        Self {
            limit,
            waiting: VecDeque::new(),
            bytes: 0,
        }
    }
}

impl Queue for DropTail {
    fn enqueue(&mut self, packet: Packet, _now: Nanos) {
        let bytes = self.bytes + self.limit.size(&packet);
        if self.limit.allows(self.waiting.len() + 1, bytes) {
            self.bytes = bytes;
            self.waiting.push_back(packet);
        }
    }

    fn dequeue(&mut self, _now: Nanos) -> Option<Packet> {
        let packet = self.waiting.pop_front()?;
        self.bytes -= self.limit.size(&packet);
        Some(packet)
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(limit: Limit, lengths: &[usize]) -> Vec<usize> {
        let mut queue = DropTail::new(limit);
        for length in lengths {
            queue.enqueue(Packet::new(&vec![0; *length]), 0);
        }
        std::iter::from_fn(|| queue.dequeue(0))
            .map(|packet| packet.ip_length())
            .collect()
    }

    #[test]
    fn a_packet_that_does_not_fit_is_dropped_and_a_smaller_one_may_still_fit() {
        assert_eq!(
            kept(Limit::bytes(3000), &[1500, 1400, 200, 100, 1]),
            [1500, 1400, 100]
        );
    }

    #[test]
    fn both_limits_hold() {
        assert_eq!(kept(Limit::packets(2), &[10, 20, 30]), [10, 20]);
        assert_eq!(kept(Limit::new(Some(2), Some(25)), &[10, 20, 15, 1]), [10, 15]);
    }

    #[test]
    fn what_leaves_makes_room() {
        let mut queue = DropTail::new(Limit::bytes(1500));
        queue.enqueue(Packet::new(&[0; 1500]), 0);
        assert!(queue.dequeue(1).is_some());
        queue.enqueue(Packet::new(&[0; 1500]), 1);
        assert!(!queue.is_empty());
    }
}
