//! A link that is on and off in turn.

use clap::{Args, ValueEnum};

use super::{Departure, Duplex, Element, Outbox};
use crate::error::{Error, Result};
use crate::packet::Packet;
use crate::random::Random;
use crate::time::Nanos;
use crate::units::parse_seconds;

/// How long a link is on and off in turn. It begins on.
#[derive(Debug)]
pub enum Schedule {
    /// The same times again and again (Mahimahi's mm-intermittent).
    Periodic,
    /// Random times from exponential distributions with these means (Mahimahi's mm-onoff).
    Random(Random),
}

/// Loses the packets that arrive while it is off.
#[derive(Debug)]
pub struct OnOff {
    on: Nanos,
    off: Nanos,
    schedule: Schedule,
    is_on: bool,
    next_switch: Nanos,
    outbox: Outbox,
}

impl OnOff {
    /// A link that begins at `start`.
    ///
    /// # Panics
    /// When both times are 0.
    #[must_use]
    pub fn new(on: Nanos, off: Nanos, schedule: Schedule, start: Nanos) -> Self {
        assert!(on + off > 0, "a link that is neither on nor off");
        Self { on, off, schedule, is_on: false, next_switch: start, outbox: Outbox::default() }
    }

    fn is_on_at(&mut self, now: Nanos) -> bool {
        if let Schedule::Periodic = self.schedule {
            let rounds = now.saturating_sub(self.next_switch) / (self.on + self.off);
            self.next_switch += rounds * (self.on + self.off);
        }
        while self.next_switch <= now {
            self.is_on = !self.is_on;
            let mean = if self.is_on { self.on } else { self.off };
            self.next_switch += match &mut self.schedule {
                Schedule::Periodic => mean,
                Schedule::Random(random) => random.exponential(mean),
            };
        }
        self.is_on
    }
}

impl Element for OnOff {
    fn push(&mut self, packet: Packet, now: Nanos) {
        if self.is_on_at(now) {
            self.outbox.push(packet, now);
        }
    }

    fn pop(&mut self, now: Nanos) -> Option<Departure> {
        self.outbox.pop(now)
    }

    fn next_due(&self) -> Option<Nanos> {
        self.outbox.next_due()
    }
}

/// The arguments of `mm-onoff` and `mm-intermittent`, whose schedules differ.
#[derive(Args, Debug)]
pub struct OnOffOptions {
    /// The direction whose link is on and off
    #[arg(value_enum)]
    direction: Direction,

    /// How long the link is on, in seconds, fractions allowed
    #[arg(value_name = "ON_SECONDS")]
    on: String,

    /// How long the link is off and loses every packet, in seconds
    #[arg(value_name = "OFF_SECONDS")]
    off: String,
}

impl OnOffOptions {
    /// Build both directions of a link that begins at `start`.
    pub fn build(&self, schedule: Schedule, start: Nanos) -> Result<Duplex> {
        let (on, off) = (parse_seconds(&self.on)?, parse_seconds(&self.off)?);
        if on + off == 0 {
            return Err(Error::new("a link cannot be on for 0 s and off for 0 s; give at least one of them"));
        }
        let switching: Box<dyn Element> = Box::new(OnOff::new(on, off, schedule, start));
        let always_on: Box<dyn Element> = Box::new(OnOff::new(1, 0, Schedule::Periodic, start));
        Ok(match self.direction {
            Direction::Uplink => Duplex { uplink: switching, downlink: always_on },
            Direction::Downlink => Duplex { uplink: always_on, downlink: switching },
        })
    }

    /// The link in words, such as `(up) on=5s off=1s`.
    #[must_use]
    pub fn describe(&self) -> String {
        let direction = match self.direction {
            Direction::Uplink => "up",
            Direction::Downlink => "down",
        };
        format!("({direction}) on={}s off={}s", self.on, self.off)
    }
}

/// A direction, as Mahimahi names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Direction {
    Uplink,
    Downlink,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::NANOS_PER_SECOND;

    /// At which of the first instants a packet passes.
    fn passes(mut link: OnOff, instants: u64) -> Vec<u64> {
        for now in 0..instants {
            link.push(Packet::new(&[0; 20]), now);
        }
        std::iter::from_fn(|| link.pop(instants)).map(|departure| departure.at).collect()
    }

    #[test]
    fn a_periodic_link_is_on_first_and_then_off_in_turn() {
        assert_eq!(passes(OnOff::new(2, 3, Schedule::Periodic, 0), 11), [0, 1, 5, 6, 10]);
        assert_eq!(passes(OnOff::new(0, 3, Schedule::Periodic, 0), 7), []);
        assert_eq!(passes(OnOff::new(2, 0, Schedule::Periodic, 0), 4), [0, 1, 2, 3]);
    }

    #[test]
    fn a_long_pause_changes_no_phase() {
        let mut link = OnOff::new(2, 3, Schedule::Periodic, 0);
        for now in [0, 5_000_000_001, 5_000_000_002] {
            link.push(Packet::new(&[0; 20]), now);
        }
        assert_eq!(
            std::iter::from_fn(|| link.pop(6_000_000_000)).map(|it| it.at).collect::<Vec<_>>(),
            [0, 5_000_000_001]
        );
    }

    #[test]
    fn a_random_link_is_on_for_its_share_of_the_time() {
        let random = Schedule::Random(Random::from_seed(1));
        let passed = passes(OnOff::new(200, 100, random, 0), 1_000_000).len();
        assert!((650_000..683_000).contains(&passed), "{passed}");
    }

    #[test]
    fn a_random_link_that_is_never_off_passes_everything() {
        let random = Schedule::Random(Random::from_seed(1));
        assert_eq!(passes(OnOff::new(NANOS_PER_SECOND, 0, random, 0), 1000).len(), 1000);
    }
}
