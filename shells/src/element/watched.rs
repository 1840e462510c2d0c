//! A link that does nothing to packets, and who watches it.

use std::collections::VecDeque;

use super::{Departure, Element, LinkObserver};
use crate::packet::Packet;
use crate::time::Nanos;

/// Gives every packet up at once, and tells the observers.
pub struct Watched {
    observers: Vec<Box<dyn LinkObserver>>,
    passed: VecDeque<Departure>,
}

impl Watched {
    #[must_use]
    pub fn new(observers: Vec<Box<dyn LinkObserver>>) -> Self {
        Self { observers, passed: VecDeque::new() }
    }
}

impl Element for Watched {
    fn push(&mut self, packet: Packet, now: Nanos) {
        for observer in &mut self.observers {
            observer.arrived(&packet, now);
            observer.departed(&packet, now, now);
        }
        self.passed.push_back(Departure { packet, at: now });
    }

    fn pop(&mut self, _now: Nanos) -> Option<Departure> {
        self.passed.pop_front()
    }

    fn next_due(&self) -> Option<Nanos> {
        self.passed.front().map(|departure| departure.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::log::Meter;

    #[test]
    fn packets_pass_at_once_and_are_seen() {
        let meter = Meter::of_rates(0);
        let mut element = Watched::new(vec![meter.uplink()]);
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
