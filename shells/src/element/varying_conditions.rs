//! Delay and loss that change over time, from a conditions file.

use std::path::PathBuf;

use clap::Args;

use super::{Delay, Departure, Duplex, Element, Impairment, LossObservers, NetworkContext, Outbox};
use crate::conditions::Conditions;
use crate::error::Result;
use crate::packet::Packet;
use crate::random::Random;
use crate::time::Nanos;

/// Delays or loses each packet by the conditions at the instant of its arrival. No packet overtakes another.
pub struct VaryingConditions {
    conditions: Conditions,
    start: Nanos,
    random: Random,
    observers: LossObservers,
    outbox: Outbox,
}

impl VaryingConditions {
    #[must_use]
    pub fn new(conditions: Conditions, start: Nanos, random: Random, observers: LossObservers) -> Self {
        Self { conditions, start, random, observers, outbox: Outbox::default() }
    }
}

impl Element for VaryingConditions {
    fn push(&mut self, packet: Packet, now: Nanos) {
        let condition = self.conditions.at(now.saturating_sub(self.start));
        for packet in packet.into_segments() {
            if condition.loss > 0.0 && self.random.chance(condition.loss) {
                self.observers.lost(&packet, now);
                continue;
            }
            // If the delay shrinks, this packet waits so that it does not overtake those before it.
            let at = (now + condition.delay).max(self.outbox.last().unwrap_or(0));
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
        arrival + self.conditions.shortest_delay()
    }
}

/// The options of `mm-net` for conditions over time.
#[derive(Args, Debug)]
#[command(next_help_heading = "Conditions")]
pub struct NetConditions {
    /// Delay and loss over time from inside to outside, in addition to other options: CSV of time_s, delay_ms, loss.
    /// A column rate_mbps is ignored here: give the same file to --up as well
    #[arg(long, value_name = "FILE")]
    up_conditions: Option<PathBuf>,

    /// The same from outside to inside
    #[arg(long, value_name = "FILE")]
    down_conditions: Option<PathBuf>,
}

impl Impairment for NetConditions {
    fn build(&self, context: &mut NetworkContext<'_>) -> Result<Option<Duplex>> {
        if self.up_conditions.is_none() && self.down_conditions.is_none() {
            return Ok(None);
        }
        let element =
            |file: &Option<PathBuf>, purpose, observers: &LossObservers| -> Result<Box<dyn Element>> {
                let Some(file) = file else { return Ok(Box::new(Delay::new(0))) };
                let (conditions, random) = (Conditions::read(file)?, context.seed.generator(purpose));
                Ok(Box::new(VaryingConditions::new(conditions, context.start, random, observers.clone())))
            };
        Ok(Some(Duplex {
            uplink: element(&self.up_conditions, "conditions uplink", &context.losses[0])?,
            downlink: element(&self.down_conditions, "conditions downlink", &context.losses[1])?,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACKETS: usize = 4_000;
    const MILLISECOND: Nanos = 1_000_000;

    /// Packets that arrive a millisecond apart, in order of departure: (number, time of departure).
    fn departures(text: &str) -> Vec<(usize, Nanos)> {
        let conditions = Conditions::parse(text, "test").unwrap();
        let mut element =
            VaryingConditions::new(conditions, 0, Random::from_seed(1), LossObservers::default());
        for number in 0..PACKETS {
            // The length of each packet is its number.
            element.push(Packet::new(&vec![0; number]), number as Nanos * MILLISECOND);
        }
        std::iter::from_fn(|| element.pop(Nanos::MAX / 2))
            .map(|left| (left.packet.ip_length(), left.at))
            .collect()
    }

    #[test]
    fn a_packet_has_the_delay_of_its_arrival_and_never_overtakes() {
        let left = departures("time_s,delay_ms\n0,20\n1,50\n2,20\n3,20\n");
        assert_eq!(left.len(), PACKETS);
        assert!(left.is_sorted());
        let delay = |number: usize| (left[number].1 - number as Nanos * MILLISECOND) / MILLISECOND;
        // When the delay falls from 50 to 20 ms at 2 s, packets wait until 2.049 s for the one that arrived at 1.999 s.
        let delays = [0, 999, 1000, 1999, 2000, 2029, 2030, 3999].map(delay);
        assert_eq!(delays, [20, 20, 50, 50, 49, 20, 20, 20]);
    }

    #[test]
    fn packets_are_lost_as_the_time_of_their_arrival_says() {
        let left = departures("time_s,loss\n0,0\n1,0.5\n2,1\n3,0\n4,0\n");
        let count =
            |from: usize| left.iter().filter(|(number, _)| (from..from + 1000).contains(number)).count();
        assert_eq!([count(0), count(2000), count(3000)], [1000, 0, 1000]);
        // The count is within 5 standard deviations of the binomial distribution.
        assert!((421..579).contains(&count(1000)), "{}", count(1000));
    }
}
