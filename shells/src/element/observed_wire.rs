//! A link that only shows packets to observers.

use super::{Departure, Element, LinkObserver, Outbox};
use crate::packet::Packet;
use crate::time::Nanos;

/// Passes every packet on unchanged and at once, and shows it to the observers.
pub struct ObservedWire {
    observers: Vec<Box<dyn LinkObserver>>,
    outbox: Outbox,
}

impl ObservedWire {
    #[must_use]
    pub fn new(observers: Vec<Box<dyn LinkObserver>>) -> Self {
        Self { observers, outbox: Outbox::default() }
    }
}

impl Element for ObservedWire {
    fn push(&mut self, packet: Packet, now: Nanos) {
        for observer in &mut self.observers {
            observer.arrived(&packet, now);
            observer.departed(&packet, now, now);
        }
        self.outbox.push(packet, now);
    }

    fn pop(&mut self, now: Nanos) -> Option<Departure> {
        self.outbox.pop(now)
    }

    fn next_due(&self) -> Option<Nanos> {
        self.outbox.next_due()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Meter;

    #[test]
    fn packets_pass_at_once_and_are_seen() {
        let meter = Meter::of_rates(0);
        let mut element = ObservedWire::new(vec![Box::new(meter.uplink())]);
        element.push(Packet::new(&[1; 1250]), 500_000_000);
        assert_eq!(element.next_due(), Some(500_000_000));
        let departure = element.pop(500_000_000).unwrap();
        assert_eq!((departure.at, departure.packet.ip_length()), (500_000_000, 1250));
        assert_eq!(element.pop(500_000_000), None);
        let mut shown = Vec::new();
        meter.show(1_000_000_000, &mut shown);
        assert_eq!(String::from_utf8(shown).unwrap(), "up    0.010 Mbit/s\n");
    }
}
