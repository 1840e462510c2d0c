//! A line on the terminal, once a second, about the packets on a link.

use std::cell::RefCell;
use std::io::Write;
use std::rc::Rc;

use crate::element::{LinkObserver, LossObserver};
use crate::packet::Packet;
use crate::time::{NANOS_PER_MILLISECOND, NANOS_PER_SECOND, Nanos};

/// How often the line is written.
const PERIOD: Nanos = NANOS_PER_SECOND;

/// Counts the events at a link, and shows the directions that have an observer.
#[derive(Clone)]
pub struct Meter(Rc<RefCell<Counts>>);

struct Counts {
    directions: [Option<Count>; 2],
    has_queue: bool,
    next: Nanos,
}

#[derive(Clone, Copy, Default)]
struct Count {
    bytes: usize,
    drops: usize,
    losses: usize,
    longest_delay: Nanos,
}

impl Meter {
    /// Make the meter of a link with a queue.
    #[must_use]
    pub fn new(start: Nanos) -> Self {
        Self::with_counts(start, true)
    }

    /// Make the meter of a link without a queue: it shows only rates.
    #[must_use]
    pub fn of_rates(start: Nanos) -> Self {
        Self::with_counts(start, false)
    }

    fn with_counts(start: Nanos, has_queue: bool) -> Self {
        Self(Rc::new(RefCell::new(Counts { directions: [None; 2], has_queue, next: start + PERIOD })))
    }

    /// The observer that counts the uplink.
    #[must_use]
    pub fn uplink(&self) -> Side {
        self.side(0)
    }

    /// The observer that counts the downlink.
    #[must_use]
    pub fn downlink(&self) -> Side {
        self.side(1)
    }

    fn side(&self, index: usize) -> Side {
        self.0.borrow_mut().directions[index] = Some(Count::default());
        Side { meter: self.clone(), index }
    }

    /// When the next line is due.
    #[must_use]
    pub fn next(&self) -> Nanos {
        self.0.borrow().next
    }

    /// Write a line if it is due. Errors are ignored, since the terminal may be gone.
    pub fn show(&self, now: Nanos, terminal: &mut dyn Write) {
        let mut counts = self.0.borrow_mut();
        if counts.next > now {
            return;
        }
        let span = now - counts.next + PERIOD;
        let Counts { directions, has_queue, next } = &mut *counts;
        let parts = ["up", "down"].into_iter().zip(directions).filter_map(|(name, count)| {
            let last = count.as_mut().map(std::mem::take)?;
            Some(format!("{name} {}", last.describe(span, *has_queue)))
        });
        let _ = writeln!(terminal, "{}", parts.collect::<Vec<_>>().join("   "));
        *next = now + PERIOD;
    }
}

impl Count {
    fn describe(self, span: Nanos, has_queue: bool) -> String {
        let mbps = self.bytes as f64 * 8.0 * 1e3 / span as f64;
        if !has_queue {
            return format!("{mbps:8.3} Mbit/s");
        }
        let delay_ms = self.longest_delay as f64 / NANOS_PER_MILLISECOND as f64;
        let losses = if self.losses > 0 { format!(", {} lost", self.losses) } else { String::new() };
        format!("{mbps:8.3} Mbit/s, at most {delay_ms:7.1} ms in the queue, {} dropped{losses}", self.drops)
    }
}

/// Counts one direction.
#[derive(Clone)]
pub struct Side {
    meter: Meter,
    index: usize,
}

impl Side {
    fn count(&self, add: impl FnOnce(&mut Count)) {
        if let Some(count) = &mut self.meter.0.borrow_mut().directions[self.index] {
            add(count);
        }
    }
}

impl LinkObserver for Side {
    fn arrived(&mut self, _packet: &Packet, _at: Nanos) {}

    fn could_send(&mut self, _at: Nanos) {}

    fn dropped(&mut self, packets: &[Packet], _at: Nanos) {
        self.count(|count| count.drops += packets.len());
    }

    fn departed(&mut self, packet: &Packet, arrived: Nanos, at: Nanos) {
        self.count(|count| {
            count.bytes += packet.wire_length();
            count.longest_delay = count.longest_delay.max(at - arrived);
        });
    }
}

impl LossObserver for Side {
    fn lost(&self, _packet: &Packet, _at: Nanos) {
        self.count(|count| count.losses += 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_shows_the_last_second_of_both_directions() {
        let meter = Meter::new(0);
        let (mut up, mut down) = (meter.uplink(), meter.downlink());
        for _ in 0..100 {
            up.departed(&Packet::new(&[0; 1250]), 5_000_000, 7_500_000);
        }
        down.dropped(&[Packet::new(&[0; 20])], 0);
        down.lost(&Packet::new(&[0; 20]), 0);
        down.lost(&Packet::new(&[0; 20]), 0);
        let mut shown = Vec::new();
        meter.show(999_999_999, &mut shown);
        assert!(shown.is_empty());
        meter.show(1_000_000_000, &mut shown);
        let line = String::from_utf8(shown).unwrap();
        assert!(line.trim_end().ends_with("1 dropped, 2 lost"), "{line}");
        assert!(line.contains("up    1.000 Mbit/s, at most     2.5 ms in the queue, 0 dropped"), "{line}");
        assert!(line.contains("down    0.000 Mbit/s, at most     0.0 ms in the queue, 1 dropped"), "{line}");
        assert_eq!(meter.next(), 2_000_000_000);
    }
}
