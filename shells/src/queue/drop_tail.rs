//! A queue that drops arriving packets when it is full.

use super::backlog::Backlog;
use super::{Limit, Queue, QueueKind, Waiting};
use crate::packet::Packet;
use crate::time::Nanos;

/// The name and the constructor.
pub const KIND: QueueKind = QueueKind {
    name: "droptail",
    summary: "Drops what arrives when it is full",
    has_limit: true,
    parameters: &[],
    build: |parts| Ok(Box::new(DropTail::new(parts.required_limit()?))),
};

/// Drops an arriving packet that would exceed the limit.
#[derive(Debug)]
pub struct DropTail(Backlog);

impl DropTail {
    #[must_use]
    pub fn new(limit: Limit) -> Self {
        Self(Backlog::new(limit))
    }
}

impl Queue for DropTail {
    fn enqueue(&mut self, waiting: Waiting, dropped: &mut Vec<Packet>) {
        if self.0.has_room_for(&waiting) {
            self.0.push(waiting);
        } else {
            dropped.push(waiting.packet);
        }
    }

    fn dequeue(&mut self, _now: Nanos, _dropped: &mut Vec<Packet>) -> Option<Waiting> {
        self.0.pop()
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{kept_and_dropped, waiting};
    use super::*;

    fn kept(limit: Limit, lengths: &[usize]) -> Vec<usize> {
        kept_and_dropped(&mut DropTail::new(limit), lengths).0
    }

    #[test]
    fn a_packet_that_does_not_fit_is_dropped_and_a_smaller_one_may_still_fit() {
        let mut queue = DropTail::new(Limit::bytes(3000));
        let (kept, dropped) = kept_and_dropped(&mut queue, &[1500, 1400, 200, 100, 1]);
        assert_eq!(kept, [1500, 1400, 100]);
        assert_eq!(dropped, [200, 1]);
    }

    #[test]
    fn both_limits_hold() {
        assert_eq!(kept(Limit::packets(2), &[10, 20, 30]), [10, 20]);
        assert_eq!(kept(Limit::new(Some(2), Some(25)), &[10, 20, 15, 1]), [10, 15]);
    }

    #[test]
    fn a_limit_may_count_a_header_with_each_packet() {
        assert_eq!(kept(Limit::bytes(3007).counting_header(4), &[1500, 1500]), [1500]);
        assert_eq!(kept(Limit::bytes(3008).counting_header(4), &[1500, 1500]), [1500, 1500]);
    }

    #[test]
    fn what_leaves_makes_room() {
        let mut queue = DropTail::new(Limit::bytes(1500));
        let mut dropped = Vec::new();
        queue.enqueue(waiting(1500, 0), &mut dropped);
        assert!(queue.dequeue(1, &mut dropped).is_some());
        queue.enqueue(waiting(1500, 1), &mut dropped);
        assert!(!queue.is_empty());
        assert_eq!(dropped, []);
    }
}
