//! A queue without a limit.

use std::collections::VecDeque;

use super::{Queue, QueueKind, Waiting};
use crate::packet::Packet;
use crate::time::Nanos;

/// The name and the constructor.
pub const KIND: QueueKind = QueueKind {
    name: "infinite",
    summary: "Keeps every packet",
    has_limit: false,
    parameters: &[],
    build: |_| Ok(Box::new(Infinite::default())),
};

/// Keeps every packet; Mahimahi's default.
#[derive(Debug, Default)]
pub struct Infinite {
    waiting: VecDeque<Waiting>,
}

impl Queue for Infinite {
    fn enqueue(&mut self, waiting: Waiting, _dropped: &mut Vec<Packet>) {
        self.waiting.push_back(waiting);
    }

    fn dequeue(&mut self, _now: Nanos, _dropped: &mut Vec<Packet>) -> Option<Waiting> {
        self.waiting.pop_front()
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}
