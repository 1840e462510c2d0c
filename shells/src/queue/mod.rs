//! Queues: what waits in front of a link, and what is dropped there.

mod drop_tail;
mod infinite;
mod limit;

pub use drop_tail::DropTail;
pub use infinite::Infinite;
pub use limit::Limit;

use crate::packet::Packet;
use crate::time::Nanos;

/// What waits for a link. The link takes a packet out when it starts to send it.
pub trait Queue {
    /// Take a packet that arrives at `now`, or drop it, or drop another in its favour.
    fn enqueue(&mut self, packet: Packet, now: Nanos);

    /// Give up the packet to send at `now`. A queue may drop packets before it finds one to send.
    fn dequeue(&mut self, now: Nanos) -> Option<Packet>;

    fn is_empty(&self) -> bool;
}
