//! The options of a delay.

use clap::Args;

use crate::element::{Delay, Duplex, Element, JitteredDelay, Order};
use crate::random::Seed;
use crate::time::Nanos;
use crate::units::parse_milliseconds;

/// Delays that differ by direction or by packet.
#[derive(Args, Debug)]
#[command(next_help_heading = "Delay")]
pub struct DelayArguments {
    /// One-way delay from inside to outside, where it differs
    #[arg(long, value_name = "MS", value_parser = parse_milliseconds)]
    delay_up: Option<Nanos>,

    /// One-way delay from outside to inside, where it differs
    #[arg(long, value_name = "MS", value_parser = parse_milliseconds)]
    delay_down: Option<Nanos>,

    /// Vary each packet's delay by up to so much, evenly, either way; packets keep their order
    #[arg(long, value_name = "MS", value_parser = parse_milliseconds)]
    jitter: Option<Nanos>,

    /// Let packets overtake each other when their delays vary
    #[arg(long, requires = "jitter")]
    reorder: bool,
}

impl DelayArguments {
    /// Build both directions; `delay` is for those that have none of their own.
    #[must_use]
    pub fn build(&self, delay: Nanos, seed: Seed) -> Duplex {
        let element = |span, purpose| -> Box<dyn Element> {
            let order = if self.reorder { Order::Free } else { Order::Kept };
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

    /// The round trip of an empty network, jitter aside.
    #[must_use]
    pub fn rtt(&self, delay: Nanos) -> Nanos {
        self.delay_up.unwrap_or(delay) + self.delay_down.unwrap_or(delay)
    }
}
