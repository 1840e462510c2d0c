//! A shell's effects on packets: one element per file; all implement one small trait.
//!
//! An element never reads a clock and never sleeps: its caller passes the time. It does not depend on timely calls,
//! either. Each packet that leaves it carries the exact instant of its departure, so the next element, or a test, sees
//! exact times even when the machine was late.
//!
//! The file of an element also defines its options on the command line and what they build. An element that implements
//! [`Impairment`] and is listed in [`IMPAIRMENTS`] is part of `mm-net`.

mod chain;
mod chosen_loss;
mod constant_rate;
mod delay;
mod duplex;
mod impairment;
mod link;
mod loss;
mod loss_observer;
mod observed_queue;
mod observed_wire;
mod on_off;
mod outbox;
mod retransmission;
mod server_delay;
mod trace_rate;
mod varying_conditions;

pub use chain::Chain;
pub use chosen_loss::{Choice, ChosenLoss, ChosenLossOptions, NetChosenLoss};
pub use constant_rate::ConstantRate;
pub use delay::{Delay, DelayOptions, JitteredDelay, NetDelay, Order};
pub use duplex::Duplex;
pub use impairment::{Impairment, NetworkContext, Registration, add_options, build_network};
pub use link::{LinkOptions, NetLink};
pub use loss::{Loss, LossModel, LossOptions, NetLoss};
pub use loss_observer::{LossObserver, LossObservers};
pub use observed_queue::{LinkObserver, ObservedQueue};
pub use observed_wire::ObservedWire;
pub use on_off::{NetOnOff, OnOff, OnOffOptions, Schedule};
pub use outbox::Outbox;
pub use retransmission::{Persistence, Retransmission};
pub use server_delay::{NetServerDelay, ServerDelay};
pub use trace_rate::TraceRate;
pub use varying_conditions::{NetConditions, VaryingConditions};

use crate::packet::Packet;
use crate::time::Nanos;

/// The impairments of `mm-net`, in the order in which their shells would be nested: outermost first. To add one, add a
/// file that implements [`Impairment`], and a line here.
pub const IMPAIRMENTS: &[Registration] = &[
    Registration::of::<NetServerDelay>(),
    Registration::of::<NetDelay>(),
    Registration::of::<NetLink>(),
    Registration::of::<NetConditions>(),
    Registration::of::<NetLoss>(),
    Registration::of::<NetOnOff>(),
    Registration::of::<NetChosenLoss>(),
];

/// A packet that leaves an element, and the instant at which it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Departure {
    pub packet: Packet,
    pub at: Nanos,
}

/// One direction of one impairment.
///
/// Time never goes back from one call to the next. When a packet arrives at the very instant at which another is due,
/// the one that is due leaves first.
pub trait Element {
    /// Take a packet that arrives at `now`. It may be dropped.
    fn push(&mut self, packet: Packet, now: Nanos);

    /// Take out the next packet that is due at or before `now`.
    fn pop(&mut self, now: Nanos) -> Option<Departure>;

    /// When to call [`Element::pop`] next; `None` when only a push can change anything. The answer may be too early
    /// (then there is nothing to pop, and the next answer is later), but never too late.
    fn next_due(&self) -> Option<Nanos>;

    /// The earliest instant at which a packet could leave that arrives at `arrival`, after everything before it. The
    /// answer may be too early, but never too late.
    fn earliest_exit(&self, arrival: Nanos) -> Nanos {
        arrival
    }

    /// When the network ends, for an element that works for a limited time.
    fn end(&self) -> Option<Nanos> {
        None
    }
}
