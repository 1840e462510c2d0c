//! A link that works at times and loses everything at others.

use std::collections::VecDeque;

use super::{Departure, Element};
use crate::packet::Packet;
use crate::random::Random;
use crate::time::Nanos;

/// How long a link is on and off in turn. It begins on.
#[derive(Debug)]
pub enum Schedule {
    /// Always as long (Mahimahi's mm-intermittent).
    Periodic,
    /// As long on average, exponentially distributed (Mahimahi's mm-onoff).
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
    passed: VecDeque<Departure>,
}

impl OnOff {
    /// A link that begins at `start`.
    ///
    /// # Panics
    /// When both times are 0.
    #[must_use]
    pub fn new(on: Nanos, off: Nanos, schedule: Schedule, start: Nanos) -> Self {
        assert!(on + off > 0, "a link that is neither on nor off");
        Self { on, off, schedule, is_on: false, next_switch: start, passed: VecDeque::new() }
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
            self.passed.push_back(Departure { packet, at: now });
        }
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
    use crate::time::NANOS_PER_SECOND;

    /// At which of so many ms, counted from the start, a packet passes.
    fn passes(mut link: OnOff, milliseconds: u64) -> Vec<u64> {
        for now in 0..milliseconds {
            link.push(Packet::new(&[0; 20]), now);
        }
        link.passed.iter().map(|departure| departure.at).collect()
    }

    #[test]
    fn a_periodic_link_is_on_first_and_then_off_in_turn() {
        assert_eq!(passes(OnOff::new(2, 3, Schedule::Periodic, 0), 11), [0, 1, 5, 6, 10]);
        assert_eq!(passes(OnOff::new(0, 3, Schedule::Periodic, 0), 7), []);
        assert_eq!(passes(OnOff::new(2, 0, Schedule::Periodic, 0), 4), [0, 1, 2, 3]);
    }

    #[test]
    fn a_long_rest_changes_no_phase() {
        let mut link = OnOff::new(2, 3, Schedule::Periodic, 0);
        for now in [0, 5_000_000_001, 5_000_000_002] {
            link.push(Packet::new(&[0; 20]), now);
        }
        assert_eq!(link.passed.iter().map(|it| it.at).collect::<Vec<_>>(), [0, 5_000_000_001]);
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
