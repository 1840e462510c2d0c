//! Packets in order of arrival, counted against a limit: the common part of queues with a limit.

use std::collections::VecDeque;

use super::{Limit, Waiting};

#[derive(Debug)]
pub struct Backlog {
    limit: Limit,
    waiting: VecDeque<Waiting>,
    bytes: usize,
}

impl Backlog {
    pub fn new(limit: Limit) -> Self {
        Self { limit, waiting: VecDeque::new(), bytes: 0 }
    }

    /// Whether the limit would still hold with one more packet.
    pub fn has_room_for(&self, waiting: &Waiting) -> bool {
        self.limit.allows(self.waiting.len() + 1, self.bytes + self.limit.size(&waiting.packet))
    }

    pub fn within_limit(&self) -> bool {
        self.limit.allows(self.waiting.len(), self.bytes)
    }

    pub fn push(&mut self, waiting: Waiting) {
        self.bytes += self.limit.size(&waiting.packet);
        self.waiting.push_back(waiting);
    }

    pub fn pop(&mut self) -> Option<Waiting> {
        let waiting = self.waiting.pop_front()?;
        self.bytes -= self.limit.size(&waiting.packet);
        Some(waiting)
    }

    /// The waiting bytes, as the limit counts them.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}
