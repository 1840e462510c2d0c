//! Waking up on time although the kernel wakes sleepers a little late.

use crate::time::Nanos;

/// The most that a wake-up is moved forward. Beyond it the machine is busy, and earlier would not help.
const MOST: Nanos = 100_000;

/// How much one wake-up counts against those before it: an eighth.
const WEIGHT: Nanos = 8;

/// Learns how late sleeps end, and asks to be woken so much earlier; what is then left until the deadline is
/// waited for awake.
#[derive(Debug, Default)]
pub struct Alarm {
    usual_lateness: Nanos,
}

impl Alarm {
    /// How long to sleep from `now` for something due then; nothing when that is so soon that one must stay
    /// awake.
    #[must_use]
    pub fn sleep(&self, now: Nanos, due: Nanos) -> Nanos {
        due.saturating_sub(now).saturating_sub(self.usual_lateness)
    }

    /// Learn from a sleep that was to end at `asked` and ended at `woke`.
    pub fn learn(&mut self, asked: Nanos, woke: Nanos) {
        let lateness = woke.saturating_sub(asked).min(MOST);
        self.usual_lateness = (self.usual_lateness * (WEIGHT - 1) + lateness) / WEIGHT;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_that_end_late_become_shorter_by_as_much() {
        let mut alarm = Alarm::default();
        assert_eq!(alarm.sleep(1_000, 2_000_000), 1_999_000);
        for _ in 0..100 {
            alarm.learn(0, 40_000);
        }
        let sleep = alarm.sleep(0, 2_000_000);
        assert!((1_960_000..1_960_100).contains(&sleep), "{sleep}");
        assert_eq!(alarm.sleep(1_980_000, 2_000_000), 0);
    }

    #[test]
    fn a_busy_machine_is_not_made_busier() {
        let mut alarm = Alarm::default();
        for _ in 0..100 {
            alarm.learn(0, 50_000_000);
        }
        assert!(alarm.sleep(0, 2_000_000) >= 2_000_000 - MOST);
    }
}
