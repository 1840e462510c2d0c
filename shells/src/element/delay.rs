//! Delay, constant or with jitter.

use clap::Args;

use super::{Departure, Duplex, Element, Impairment, NetworkContext, Outbox};
use crate::error::Result;
use crate::packet::Packet;
use crate::random::{Random, Seed};
use crate::time::Nanos;
use crate::units::parse_milliseconds;

/// Delays every packet by the same span.
#[derive(Debug)]
pub struct Delay {
    delay: Nanos,
    outbox: Outbox,
}

impl Delay {
    #[must_use]
    pub fn new(delay: Nanos) -> Self {
        Self { delay, outbox: Outbox::default() }
    }
}

impl Element for Delay {
    fn push(&mut self, packet: Packet, now: Nanos) {
        self.outbox.push(packet, now + self.delay);
    }

    fn pop(&mut self, now: Nanos) -> Option<Departure> {
        self.outbox.pop(now)
    }

    fn next_due(&self) -> Option<Nanos> {
        self.outbox.next_due()
    }

    fn earliest_exit(&self, arrival: Nanos) -> Nanos {
        arrival + self.delay
    }
}

/// Whether a packet may overtake another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// No: a packet waits for those before it.
    OfArrival,
    /// Yes.
    Any,
}

/// Delays each packet by its own span: the delay plus or minus at most the jitter, uniformly distributed, and never
/// less than 0.
#[derive(Debug)]
pub struct JitteredDelay {
    delay: Nanos,
    jitter: Nanos,
    order: Order,
    random: Random,
    outbox: Outbox,
}

impl JitteredDelay {
    #[must_use]
    pub fn new(delay: Nanos, jitter: Nanos, order: Order, random: Random) -> Self {
        Self { delay, jitter, order, random, outbox: Outbox::default() }
    }

    /// When a packet that arrives now leaves.
    fn departure(&mut self, now: Nanos) -> Nanos {
        let shortest = self.delay.saturating_sub(self.jitter);
        let spread = self.delay + self.jitter - shortest;
        let at = now + shortest + (self.random.fraction() * spread as f64) as Nanos;
        match (self.order, self.outbox.last()) {
            (Order::OfArrival, Some(last)) => at.max(last),
            _ => at,
        }
    }
}

impl Element for JitteredDelay {
    fn push(&mut self, packet: Packet, now: Nanos) {
        for packet in packet.into_segments() {
            let at = self.departure(now);
            self.outbox.push(packet, at);
        }
    }

    fn pop(&mut self, now: Nanos) -> Option<Departure> {
        self.outbox.pop(now)
    }

    fn next_due(&self) -> Option<Nanos> {
        self.outbox.next_due()
    }

    fn earliest_exit(&self, arrival: Nanos) -> Nanos {
        arrival + self.delay.saturating_sub(self.jitter)
    }
}

/// The options of `mm-delay`: delays that differ by direction or by packet.
#[derive(Args, Debug)]
#[command(next_help_heading = "Delay")]
pub struct DelayOptions {
    /// One-way delay from inside to outside, if the two directions differ
    #[arg(long, value_name = "MS", value_parser = parse_milliseconds)]
    delay_up: Option<Nanos>,

    /// One-way delay from outside to inside, if the two directions differ
    #[arg(long, value_name = "MS", value_parser = parse_milliseconds)]
    delay_down: Option<Nanos>,

    /// Vary each packet's delay by up to this much, evenly, either way; packets keep their order
    #[arg(long, value_name = "MS", value_parser = parse_milliseconds)]
    jitter: Option<Nanos>,

    /// Let packets overtake each other when their delays vary
    #[arg(long, requires = "jitter")]
    reorder: bool,
}

impl DelayOptions {
    /// Build both directions; `delay` applies to the directions without their own option.
    #[must_use]
    pub fn build(&self, delay: Nanos, seed: Seed) -> Duplex {
        let element = |span, purpose| -> Box<dyn Element> {
            let order = if self.reorder { Order::Any } else { Order::OfArrival };
            match self.jitter {
                None => Box::new(Delay::new(span)),
                Some(jitter) => Box::new(JitteredDelay::new(span, jitter, order, seed.generator(purpose))),
            }
        };
        Duplex {
            uplink: element(self.delay_up.unwrap_or(delay), "delay uplink"),
            downlink: element(self.delay_down.unwrap_or(delay), "delay downlink"),
        }
    }

    /// The round-trip time without jitter.
    fn rtt(&self, delay: Nanos) -> Nanos {
        self.delay_up.unwrap_or(delay) + self.delay_down.unwrap_or(delay)
    }
}

/// The options of `mm-net` for delay.
#[derive(Args, Debug)]
#[command(next_help_heading = "Delay")]
pub struct NetDelay {
    /// One-way delay in milliseconds, in both directions
    #[arg(long, value_name = "MS", value_parser = parse_milliseconds)]
    delay: Option<Nanos>,

    #[command(flatten)]
    options: DelayOptions,
}

impl Impairment for NetDelay {
    fn build(&self, context: &mut NetworkContext<'_>) -> Result<Option<Duplex>> {
        let delay = self.delay.unwrap_or(0);
        context.rtt = Some(self.options.rtt(delay));
        Ok(Some(self.options.build(delay, context.seed)))
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

    /// The delays of packets that arrive this far apart, in order of departure: (number, delay).
    fn delays(jitter: Nanos, order: Order, apart: Nanos) -> Vec<(usize, Nanos)> {
        let mut element = JitteredDelay::new(1_000_000, jitter, order, Random::from_seed(1));
        for number in 0..PACKETS {
            // The length of each packet is its number.
            element.push(Packet::new(&vec![0; number]), number as Nanos * apart);
        }
        std::iter::from_fn(|| element.pop(Nanos::MAX / 2))
            .map(|left| (left.packet.ip_length(), left.at - left.packet.ip_length() as Nanos * apart))
            .collect()
    }

    #[test]
    fn jitter_is_spread_evenly_about_the_delay() {
        let delays: Vec<_> = delays(400_000, Order::Any, 10_000_000).iter().map(|(_, it)| *it).collect();
        assert!(delays.iter().all(|delay| (600_000..=1_400_000).contains(delay)));
        // Each tenth of the uniform distribution contains a tenth of the packets, within 5 standard deviations.
        let deviation = (PACKETS as f64 * 0.1 * 0.9).sqrt();
        for tenth in 0..10 {
            let (from, to) = (600_000 + tenth * 80_000, 680_000 + tenth * 80_000);
            let count = delays.iter().filter(|delay| (from..to).contains(*delay)).count() as f64;
            assert!((count - PACKETS as f64 / 10.0).abs() < 5.0 * deviation, "{count} from {from} to {to}");
        }
    }

    #[test]
    fn packets_keep_their_order_unless_any_order_is_allowed() {
        let is_sorted = |order| delays(400_000, order, 10_000).is_sorted_by_key(|(number, _)| *number);
        assert!(is_sorted(Order::OfArrival));
        assert!(!is_sorted(Order::Any));
    }

    #[test]
    fn no_packet_leaves_before_it_arrived() {
        assert!(delays(5_000_000, Order::Any, 1).iter().all(|(_, delay)| *delay <= 6_000_000));
    }
}
