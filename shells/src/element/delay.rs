//! Delay, constant or with jitter, of any number of packets.

use std::collections::VecDeque;

use super::{Departure, Element};
use crate::packet::Packet;
use crate::random::Random;
use crate::time::Nanos;

/// Gives every packet up a fixed span after it arrived.
#[derive(Debug)]
pub struct Delay {
    delay: Nanos,
    waiting: VecDeque<Departure>,
}

impl Delay {
    #[must_use]
    pub fn new(delay: Nanos) -> Self {
        Self { delay, waiting: VecDeque::new() }
    }
}

impl Element for Delay {
    fn push(&mut self, packet: Packet, now: Nanos) {
        self.waiting.push_back(Departure { packet, at: now + self.delay });
    }

    fn pop(&mut self, now: Nanos) -> Option<Departure> {
        if self.next_due()? > now {
            return None;
        }
        self.waiting.pop_front()
    }

    fn next_due(&self) -> Option<Nanos> {
        self.waiting.front().map(|departure| departure.at)
    }

    fn earliest_exit(&self, arrival: Nanos) -> Nanos {
        arrival + self.delay
    }
}

/// Whether a packet may overtake another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// A packet waits for those before it.
    Kept,
    Free,
}

/// Gives each packet up after a span of its own: the delay, plus or minus up to the jitter, each span as
/// likely as any other, and never less than nothing.
#[derive(Debug)]
pub struct JitteredDelay {
    delay: Nanos,
    jitter: Nanos,
    order: Order,
    random: Random,
    /// Sorted by time of departure, then of arrival.
    waiting: VecDeque<Departure>,
}

impl JitteredDelay {
    #[must_use]
    pub fn new(delay: Nanos, jitter: Nanos, order: Order, random: Random) -> Self {
        Self { delay, jitter, order, random, waiting: VecDeque::new() }
    }

    /// When a packet that arrives now is to leave.
    fn departure(&mut self, now: Nanos) -> Nanos {
        let shortest = self.delay.saturating_sub(self.jitter);
        let spread = self.delay + self.jitter - shortest;
        let at = now + shortest + (self.random.fraction() * spread as f64) as Nanos;
        match (self.order, self.waiting.back()) {
            (Order::Kept, Some(last)) => at.max(last.at),
            _ => at,
        }
    }
}

impl Element for JitteredDelay {
    fn push(&mut self, packet: Packet, now: Nanos) {
        for packet in packet.into_segments() {
            let at = self.departure(now);
            let place = self.waiting.partition_point(|other| other.at <= at);
            self.waiting.insert(place, Departure { packet, at });
        }
    }

    fn pop(&mut self, now: Nanos) -> Option<Departure> {
        if self.next_due()? > now {
            return None;
        }
        self.waiting.pop_front()
    }

    fn next_due(&self) -> Option<Nanos> {
        self.waiting.front().map(|departure| departure.at)
    }

    fn earliest_exit(&self, arrival: Nanos) -> Nanos {
        arrival + self.delay.saturating_sub(self.jitter)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_leaves_exactly_one_delay_after_it_arrived() {
        let mut delay = Delay::new(37_000_000);
        let packet = Packet::new(&[0; 100]);
        delay.push(packet.clone(), 5);
        assert_eq!(delay.next_due(), Some(37_000_005));
        assert_eq!(delay.pop(37_000_004), None);
        assert_eq!(delay.pop(40_000_000), Some(Departure { packet, at: 37_000_005 }));
        assert_eq!(delay.next_due(), None);
    }

    const PACKETS: usize = 20_000;

    /// Delays of packets that arrive so far apart, in order of departure: (number, delay).
    fn delays(jitter: Nanos, order: Order, apart: Nanos) -> Vec<(usize, Nanos)> {
        let mut element = JitteredDelay::new(1_000_000, jitter, order, Random::from_seed(1));
        for number in 0..PACKETS {
            // The length tells packets apart.
            element.push(Packet::new(&vec![0; number]), number as Nanos * apart);
        }
        std::iter::from_fn(|| element.pop(Nanos::MAX / 2))
            .map(|left| (left.packet.ip_length(), left.at - left.packet.ip_length() as Nanos * apart))
            .collect()
    }

    #[test]
    fn jitter_is_spread_evenly_about_the_delay() {
        let delays: Vec<_> = delays(400_000, Order::Free, 10_000_000).iter().map(|(_, it)| *it).collect();
        assert!(delays.iter().all(|delay| (600_000..=1_400_000).contains(delay)));
        // Of the even distribution's ten tenths each holds a tenth of the packets, within 5 deviations.
        let deviation = (PACKETS as f64 * 0.1 * 0.9).sqrt();
        for tenth in 0..10 {
            let (from, to) = (600_000 + tenth * 80_000, 680_000 + tenth * 80_000);
            let count = delays.iter().filter(|delay| (from..to).contains(*delay)).count() as f64;
            assert!((count - PACKETS as f64 / 10.0).abs() < 5.0 * deviation, "{count} from {from} to {to}");
        }
    }

    #[test]
    fn order_is_kept_unless_it_is_free() {
        let is_sorted = |order| delays(400_000, order, 10_000).is_sorted_by_key(|(number, _)| *number);
        assert!(is_sorted(Order::Kept));
        assert!(!is_sorted(Order::Free));
    }

    #[test]
    fn no_packet_leaves_before_it_arrived() {
        assert!(delays(5_000_000, Order::Free, 1).iter().all(|(_, delay)| *delay <= 6_000_000));
    }
}
