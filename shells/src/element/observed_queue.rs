//! A link's queue, and the observers of the link.

use crate::packet::Packet;
use crate::queue::{Queue, Waiting};
use crate::time::Nanos;

/// Sees everything that happens at a link, in order of time.
pub trait LinkObserver {
    /// A packet arrived.
    fn arrived(&mut self, packet: &Packet, at: Nanos);

    /// The link could send [`crate::trace::OPPORTUNITY_BYTES`] at this instant, whether or not a packet waited.
    fn could_send(&mut self, at: Nanos);

    /// The queue dropped these packets.
    fn dropped(&mut self, packets: &[Packet], at: Nanos);

    /// The last byte of a packet left the link.
    fn departed(&mut self, packet: &Packet, arrived: Nanos, at: Nanos);
}

/// Passes packets through a queue, and reports the events to the observers.
pub struct ObservedQueue {
    queue: Box<dyn Queue>,
    observers: Vec<Box<dyn LinkObserver>>,
    dropped: Vec<Packet>,
}

impl ObservedQueue {
    #[must_use]
    pub fn new(queue: Box<dyn Queue>, observers: Vec<Box<dyn LinkObserver>>) -> Self {
        Self { queue, observers, dropped: Vec::new() }
    }

    pub fn is_observed(&self) -> bool {
        !self.observers.is_empty()
    }

    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub fn enqueue(&mut self, packet: Packet, now: Nanos) {
        self.report(|observer| observer.arrived(&packet, now));
        self.queue.enqueue(Waiting { packet, arrived: now }, &mut self.dropped);
        self.report_dropped(now);
    }

    pub fn dequeue(&mut self, now: Nanos) -> Option<Waiting> {
        let waiting = self.queue.dequeue(now, &mut self.dropped);
        self.report_dropped(now);
        waiting
    }

    pub fn could_send(&mut self, at: Nanos) {
        self.report(|observer| observer.could_send(at));
    }

    pub fn departed(&mut self, sent: &Waiting, at: Nanos) {
        self.report(|observer| observer.departed(&sent.packet, sent.arrived, at));
    }

    fn report_dropped(&mut self, now: Nanos) {
        if self.dropped.is_empty() {
            return;
        }
        for observer in &mut self.observers {
            observer.dropped(&self.dropped, now);
        }
        self.dropped.clear();
    }

    fn report(&mut self, event: impl Fn(&mut dyn LinkObserver)) {
        for observer in &mut self.observers {
            event(observer.as_mut());
        }
    }
}

impl From<Box<dyn Queue>> for ObservedQueue {
    /// A queue without observers.
    fn from(queue: Box<dyn Queue>) -> Self {
        Self::new(queue, Vec::new())
    }
}
