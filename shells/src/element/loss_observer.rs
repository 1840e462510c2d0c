//! Observers of the packets that a network loses.

use std::rc::Rc;

use crate::packet::Packet;
use crate::time::Nanos;

/// Sees each packet that is lost outside a link and its queue.
pub trait LossObserver {
    /// A packet was lost at this instant.
    fn lost(&self, packet: &Packet, at: Nanos);
}

/// The observers of one direction, which all of its elements share.
#[derive(Clone, Default)]
pub struct LossObservers(Vec<Rc<dyn LossObserver>>);

impl LossObservers {
    pub fn add(&mut self, observer: impl LossObserver + 'static) {
        self.0.push(Rc::new(observer));
    }

    /// Show a loss to all of them.
    pub fn lost(&self, packet: &Packet, at: Nanos) {
        for observer in &self.0 {
            observer.lost(packet, at);
        }
    }
}
