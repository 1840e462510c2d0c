//! What a shell does to packets: one element per file, all behind one small trait.
//!
//! An element never asks the time and never sleeps: it is told. It also never depends on being asked in
//! time: whatever it gives up carries the instant at which it was due, so an element further on, or a
//! test, sees exact times even when the machine was late.

mod chain;
mod constant_rate;
mod delay;
mod duplex;
mod loss;
mod on_off;
mod trace_rate;
mod watched;
mod watched_queue;

pub use chain::Chain;
pub use constant_rate::ConstantRate;
pub use delay::{Delay, JitteredDelay, Order};
pub use duplex::Duplex;
pub use loss::{Loss, LossModel};
pub use on_off::{OnOff, Schedule};
pub use trace_rate::TraceRate;
pub use watched::Watched;
pub use watched_queue::{LinkObserver, WatchedQueue};

use crate::packet::Packet;
use crate::time::Nanos;

/// A packet that leaves an element, and the instant at which it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departure {
    pub packet: Packet,
    pub at: Nanos,
}

/// One direction of one impairment.
///
/// Callers keep time monotonic: no call is given an earlier instant than the one before. When a packet
/// arrives at the very instant another is due, the one that is due leaves first.
pub trait Element {
    /// Take a packet that arrives at `now`. It may be dropped.
    fn push(&mut self, packet: Packet, now: Nanos);

    /// Give up the next packet that is due at or before `now`.
    fn pop(&mut self, now: Nanos) -> Option<Departure>;

    /// When to ask again; `None` when only a push can change anything. The answer may be early (nothing
    /// to pop then, and a later instant to ask at), never late.
    fn next_due(&self) -> Option<Nanos>;

    /// The earliest instant at which a packet that arrives at `arrival`, not earlier than anything before it,
    /// could leave. The answer may be early, never late.
    fn earliest_exit(&self, arrival: Nanos) -> Nanos {
        arrival
    }

    /// When the network ends, for an element whose input does not go on for ever.
    fn end(&self) -> Option<Nanos> {
        None
    }
}
