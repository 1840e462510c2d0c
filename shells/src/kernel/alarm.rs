//! Waking up on time although the kernel wakes sleepers late.

use crate::time::Nanos;

/// The most that one sleep counts as late. Beyond that the machine is busy, and waking earlier would not help.
const MOST: Nanos = 500_000;

/// For a shorter span than this the process stays awake: a sleep would hardly be shorter.
const TOO_SHORT: Nanos = 8_000;

/// With each sleep that is less late than the worst one, this share of the worst is forgotten.
const FORGETTING: Nanos = 128;

/// A sleep is shortened by a sixteenth at most: many short sleeps in a row must not cost twice as many wake-ups.
const MOST_OF_A_SLEEP: Nanos = 16;

/// Sleeps are grouped by their length, in powers of two nanoseconds; the longest are 2 s and more.
const LENGTHS: usize = 32;

/// Learns how late sleeps end, and shortens the next ones by that.
///
/// A processor that was to sleep for long sleeps deeply and is slow to wake; one that sleeps shortly wakes
/// nearly at once. So a sleep ends well before the deadline, a much shorter one follows, and only the last
/// microseconds are waited for awake.
#[derive(Debug)]
pub struct Alarm {
    /// The worst lateness of the sleeps of each length, as far as it is not forgotten.
    worst: [Nanos; LENGTHS],
}

impl Default for Alarm {
    fn default() -> Self {
        Self { worst: [0; LENGTHS] }
    }
}

impl Alarm {
    /// When to wake, decided at `now`, for something that is due at `due`; `now` when it is so soon that the process must
    /// stay awake.
    #[must_use]
    pub fn wake_at(&self, now: Nanos, due: Nanos) -> Nanos {
        let span = due.saturating_sub(now);
        if span < TOO_SHORT {
            return now;
        }
        // Some day a sleep is worse than the worst one so far.
        let worst = self.worst[length_of(span)] * 3 / 2;
        due - worst.min(span / MOST_OF_A_SLEEP)
    }

    /// Learn from a sleep that began at `began`, was to end at `wanted` and ended at `woke`.
    pub fn learn(&mut self, began: Nanos, wanted: Nanos, woke: Nanos) {
        let lateness = woke.saturating_sub(wanted).min(MOST);
        let worst = &mut self.worst[length_of(wanted.saturating_sub(began))];
        *worst = lateness.max(*worst - *worst / FORGETTING);
    }
}

fn length_of(span: Nanos) -> usize {
    (span.max(1).ilog2() as usize).min(LENGTHS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Nanos = 20_000_000;
    const SHORT: Nanos = 300_000;

    #[test]
    fn sleeps_become_shorter_after_one_that_ended_late_and_only_those_of_its_length() {
        let mut alarm = Alarm::default();
        assert_eq!(alarm.wake_at(1_000, LONG), LONG);
        alarm.learn(0, LONG, LONG + 200_000);
        assert_eq!(alarm.wake_at(0, LONG), LONG - 300_000);
        assert_eq!(alarm.wake_at(LONG - SHORT, LONG), LONG);
    }

    #[test]
    fn one_late_sleep_is_forgotten_in_the_end() {
        let mut alarm = Alarm::default();
        alarm.learn(0, LONG, LONG + 400_000);
        for _ in 0..1000 {
            alarm.learn(0, LONG, LONG + 20_000);
        }
        assert_eq!(alarm.wake_at(0, LONG), LONG - 30_000);
    }

    #[test]
    fn a_deadline_is_waited_for_in_few_sleeps_and_reached_awake() {
        let mut alarm = Alarm::default();
        for length in 10..30 {
            alarm.learn(0, 1 << length, (1 << length) + MOST);
        }
        let (mut now, mut sleeps) = (0, 0);
        loop {
            let wake = alarm.wake_at(now, LONG);
            if wake == now {
                break;
            }
            (now, sleeps) = (wake, sleeps + 1);
        }
        assert!(now < LONG && LONG - now < TOO_SHORT);
        assert!(sleeps <= 3, "{sleeps}");
    }

    #[test]
    fn a_busy_machine_is_not_made_busier() {
        let mut alarm = Alarm::default();
        alarm.learn(0, LONG, LONG + 50_000_000);
        assert!(alarm.wake_at(0, LONG) >= LONG - 2 * MOST);
        alarm.learn(0, SHORT, SHORT + 50_000_000);
        assert!(alarm.wake_at(0, SHORT) >= SHORT - SHORT / 16);
    }
}
