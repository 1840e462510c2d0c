//! A queue without a limit.

use std::collections::VecDeque;

use super::Queue;
use crate::packet::Packet;
use crate::time::Nanos;

/// Keeps every packet; Mahimahi's default.
#[derive(Debug, Default)]
pub struct Infinite {
    waiting: VecDeque<Packet>,
}

impl Queue for Infinite {
    fn enqueue(&mut self, packet: Packet, _now: Nanos) {
        self.waiting.push_back(packet);
    }

    fn dequeue(&mut self, _now: Nanos) -> Option<Packet> {
        self.waiting.pop_front()
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}
