//! A queue that makes room for arriving packets by dropping those that have waited longest.

use super::backlog::Backlog;
use super::{Limit, Queue, QueueKind, Waiting};
use crate::packet::Packet;
use crate::time::Nanos;

/// The name and the constructor.
pub const KIND: QueueKind = QueueKind {
    name: "drophead",
    summary: "Drops what has waited longest when it is full",
    has_limit: true,
    parameters: &[],
    build: |parts| Ok(Box::new(DropHead::new(parts.required_limit()?))),
};

/// Takes every packet, then drops from the front until the limit holds.
#[derive(Debug)]
pub struct DropHead(Backlog);

impl DropHead {
    #[must_use]
    pub fn new(limit: Limit) -> Self {
        Self(Backlog::new(limit))
    }
}

impl Queue for DropHead {
    fn enqueue(&mut self, waiting: Waiting, dropped: &mut Vec<Packet>) {
        self.0.push(waiting);
        while !self.0.within_limit() {
            dropped.extend(self.0.pop().map(|oldest| oldest.packet));
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
    use super::super::testing::kept_and_dropped;
    use super::*;

    #[test]
    fn the_oldest_packets_make_room() {
        let mut queue = DropHead::new(Limit::bytes(3000));
        let (kept, dropped) = kept_and_dropped(&mut queue, &[100, 200, 1500, 1400]);
        assert_eq!(kept, [1500, 1400]);
        assert_eq!(dropped, [100, 200]);
    }

    #[test]
    fn a_packet_larger_than_the_limit_is_dropped_with_all_before_it() {
        let mut queue = DropHead::new(Limit::bytes(1000));
        assert_eq!(kept_and_dropped(&mut queue, &[500, 1500]), (vec![], vec![500, 1500]));
    }
}
