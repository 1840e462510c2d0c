//! Queues: packets that wait for a link, and which of them are dropped. One queue per file.

mod backlog;
mod codel;
mod drop_head;
mod drop_tail;
mod fq_codel;
mod infinite;
mod kind;
mod limit;
mod pie;
mod spec;

pub use codel::{CoDel, CoDelSettings};
pub use drop_head::DropHead;
pub use drop_tail::DropTail;
pub use fq_codel::FqCoDel;
pub use infinite::Infinite;
pub use kind::{LIMIT_PARAMETERS, LinkFacts, Parameter, QueueArguments, QueueKind, QueueParts};
pub use limit::Limit;
pub use pie::{Pie, PieSettings};
pub use spec::QueueSpec;

use crate::packet::Packet;
use crate::time::Nanos;

/// Every kind of queue, in the order of the help. To add one, add a file that defines its `KIND`, and a line here.
pub const KINDS: &[QueueKind] =
    &[infinite::KIND, drop_tail::KIND, drop_head::KIND, codel::KIND, pie::KIND, fq_codel::KIND];

/// The kind called `name`.
#[must_use]
pub fn kind(name: &str) -> Option<&'static QueueKind> {
    KINDS.iter().find(|kind| kind.name == name)
}

/// A packet that waits for a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    pub packet: Packet,
    pub arrived: Nanos,
}

/// Packets that wait for a link. The link takes a packet out when it starts to send it.
///
/// A queue appends each packet that it drops to `dropped`, where it is counted and logged.
pub trait Queue {
    /// Take a packet at the instant it arrives, or drop it, or drop another packet for it.
    fn enqueue(&mut self, waiting: Waiting, dropped: &mut Vec<Packet>);

    /// Take out the packet to send at `now`. A queue may drop packets before it finds one to send.
    fn dequeue(&mut self, now: Nanos, dropped: &mut Vec<Packet>) -> Option<Waiting>;

    fn is_empty(&self) -> bool;
}

#[cfg(test)]
mod testing {
    use super::*;

    /// A packet of this IP length that arrived at this time.
    pub fn waiting(length: usize, arrived: Nanos) -> Waiting {
        Waiting { packet: Packet::new(&vec![0; length]), arrived }
    }

    /// Enqueue packets of these lengths at once; return the lengths of those that leave the queue, and of those that
    /// were dropped.
    pub fn kept_and_dropped(queue: &mut dyn Queue, lengths: &[usize]) -> (Vec<usize>, Vec<usize>) {
        let mut dropped = Vec::new();
        for length in lengths {
            queue.enqueue(waiting(*length, 0), &mut dropped);
        }
        let kept = std::iter::from_fn(|| queue.dequeue(0, &mut dropped))
            .map(|waiting| waiting.packet.ip_length())
            .collect();
        (kept, dropped.iter().map(Packet::ip_length).collect())
    }
}
