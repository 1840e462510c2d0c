//! A link's queue, and who watches the link.

use crate::packet::Packet;
use crate::queue::{Queue, Waiting};
use crate::time::Nanos;

/// Is told everything that happens at a link, in order of time.
pub trait LinkObserver {
    fn arrived(&mut self, packet: &Packet, at: Nanos);

    /// The link could send [`crate::trace::OPPORTUNITY_BYTES`] at this instant, whether or not it had any.
    fn could_send(&mut self, at: Nanos);

    fn dropped(&mut self, packets: &[Packet], at: Nanos);

    fn departed(&mut self, packet: &Packet, arrived: Nanos, at: Nanos);
}

/// Passes packets through a queue and tells the observers.
pub struct WatchedQueue {
    queue: Box<dyn Queue>,
    observers: Vec<Box<dyn LinkObserver>>,
    dropped: Vec<Packet>,
}

impl WatchedQueue {
    #[must_use]
    pub fn new(queue: Box<dyn Queue>, observers: Vec<Box<dyn LinkObserver>>) -> Self {
        Self { queue, observers, dropped: Vec::new() }
    }

    pub fn is_watched(&self) -> bool {
        !self.observers.is_empty()
    }

    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub fn enqueue(&mut self, packet: Packet, now: Nanos) {
        self.tell(|observer| observer.arrived(&packet, now));
        self.queue.enqueue(Waiting { packet, arrived: now }, &mut self.dropped);
        self.tell_dropped(now);
    }

    pub fn dequeue(&mut self, now: Nanos) -> Option<Waiting> {
        let waiting = self.queue.dequeue(now, &mut self.dropped);
        self.tell_dropped(now);
        waiting
    }

    pub fn could_send(&mut self, at: Nanos) {
        self.tell(|observer| observer.could_send(at));
    }

    pub fn departed(&mut self, sent: &Waiting, at: Nanos) {
        self.tell(|observer| observer.departed(&sent.packet, sent.arrived, at));
    }

    fn tell_dropped(&mut self, now: Nanos) {
        if self.dropped.is_empty() {
            return;
        }
        for observer in &mut self.observers {
            observer.dropped(&self.dropped, now);
        }
        self.dropped.clear();
    }

    fn tell(&mut self, what: impl Fn(&mut dyn LinkObserver)) {
        for observer in &mut self.observers {
            what(observer.as_mut());
        }
    }
}

impl From<Box<dyn Queue>> for WatchedQueue {
    /// A queue that nobody watches.
    fn from(queue: Box<dyn Queue>) -> Self {
        Self::new(queue, Vec::new())
    }
}
