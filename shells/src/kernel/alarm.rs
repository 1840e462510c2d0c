//! Waking up on time although the kernel wakes sleepers late.

use crate::time::Nanos;

/// The most lateness that counts. A sleep that is even later shows that the machine is busy; setting further sleeps to
/// end earlier would not help then.
const MOST: Nanos = 500_000;

/// For shorter spans than this the process stays awake: a sleep would take longer.
const TOO_SHORT: Nanos = 8_000;

/// After each sleep that is less late than the worst one, the worst decreases by this fraction of itself.
const FORGETTING: Nanos = 128;

/// At most a sixteenth of a sleep's span is left for a second, shorter sleep: many short sleeps in a row must not
/// double the number of wake-ups.
const MOST_OF_A_SLEEP: Nanos = 16;

/// At most this fraction of a wait is spent awake: many short waits in a row must not keep a processor busy.
const MOST_OF_A_WAIT: Nanos = 128;

/// The worst and the usual lateness of sleeps, until one has been measured.
const FIRST_GUESS: Lateness = Lateness { worst: 200_000, usual: 50_000 };

/// Sleeps are grouped by their length: each group is a power of two nanoseconds; the longest are 2 s and more.
const LENGTHS: usize = 32;

/// Learns how late sleeps end, and shortens the next ones accordingly.
///
/// A processor sleeps more deeply in a long sleep, and is slower to wake. So a long sleep is set to end before the
/// deadline by more than the worst lateness so far. A shorter sleep follows, which ends before the deadline by the
/// usual lateness. The process stays awake for the rest. On busy processors, sleeps end nearly on time, and the process
/// hardly stays awake at all.
#[derive(Debug)]
pub struct Alarm {
    /// The lateness of sleeps, grouped by the time from the decision to the deadline.
    lateness: [Lateness; LENGTHS],
    wait: Wait,
}

#[derive(Clone, Copy, Debug)]
struct Lateness {
    /// The worst lateness, decreasing over time.
    worst: Nanos,
    /// The lateness that about one sleep in nine exceeds.
    usual: Nanos,
}

impl Lateness {
    fn learn(&mut self, lateness: Nanos) {
        self.worst = lateness.max(self.worst - self.worst / FORGETTING);
        if lateness > self.usual {
            // The usual lateness rises eight times as fast as it falls, so about one sleep in nine is later. A single
            // extreme sleep does not matter.
            self.usual += self.usual / 8 + 1000;
        } else {
            self.forget();
        }
    }

    fn forget(&mut self) {
        self.usual -= self.usual / 64;
    }
}

/// The deadline for which the process waits, and the state of this wait.
#[derive(Debug, Default)]
struct Wait {
    due: Nanos,
    since: Nanos,
    /// Whether the process stays awake until the deadline.
    is_awake: bool,
    /// The group and the planned end of the latest sleep.
    length: usize,
    wake: Nanos,
}

impl Default for Alarm {
    fn default() -> Self {
        Self { lateness: [FIRST_GUESS; LENGTHS], wait: Wait::default() }
    }
}

impl Alarm {
    /// When to wake for an event due at `due`, decided at `now`. The result is `now` when the event is so close that
    /// the process must stay awake.
    pub fn wake_at(&mut self, now: Nanos, due: Nanos) -> Nanos {
        let span = due.saturating_sub(now);
        if due != self.wait.due {
            self.wait = Wait { due, since: now, ..Wait::default() };
        }
        if span < TOO_SHORT || self.wait.is_awake {
            return now;
        }
        let length = length_of(span);
        let lateness = &mut self.lateness[length];
        // Leave room for sleeps that are later than the worst one so far.
        let for_another_sleep = (lateness.worst * 3 / 2).min(span / MOST_OF_A_SLEEP);
        let awake = lateness.usual.min((due - self.wait.since) / MOST_OF_A_WAIT);
        let earlier = for_another_sleep.max(awake);
        if span < earlier + TOO_SHORT {
            // A process that always stays awake would never learn that sleeps have become less late.
            lateness.forget();
            self.wait.is_awake = true;
            return now;
        }
        self.wait = Wait { length, wake: due - earlier, ..self.wait };
        self.wait.wake
    }

    /// Learn that the latest sleep ended at `woke`.
    pub fn learn(&mut self, woke: Nanos) {
        let lateness = woke.saturating_sub(self.wait.wake).min(MOST);
        self.lateness[self.wait.length].learn(lateness);
    }
}

fn length_of(span: Nanos) -> usize {
    (span.max(1).ilog2() as usize).min(LENGTHS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use crate::time::{NANOS_PER_MILLISECOND, NANOS_PER_SECOND};

    const LONG: Nanos = 20 * NANOS_PER_MILLISECOND;

    /// A machine with its own clock, on which a process waits for deadlines.
    struct Machine {
        now: Nanos,
        alarm: Alarm,
        random: Random,
        /// How late a sleep of a given length ends, on average.
        lateness: fn(Nanos) -> Nanos,
        sleeps: usize,
        awake: Nanos,
    }

    impl Machine {
        fn new(lateness: fn(Nanos) -> Nanos) -> Self {
            let (alarm, random) = (Alarm::default(), Random::from_seed(1));
            Self { now: NANOS_PER_SECOND, alarm, random, lateness, sleeps: 0, awake: 0 }
        }

        /// Wait for an event that is due in `span`; return how late it was noticed.
        fn wait(&mut self, span: Nanos) -> Nanos {
            let due = self.now + span;
            while self.now < due {
                let wake = self.alarm.wake_at(self.now, due);
                if wake == self.now {
                    // The time of one check for packets.
                    self.now += 1_000;
                    self.awake += 1_000;
                    continue;
                }
                self.sleeps += 1;
                let mean = (self.lateness)(wake - self.now) as f64;
                let is_outlier = self.random.chance(0.005);
                let factor = if is_outlier { 4.0 } else { 0.75 + 0.5 * self.random.fraction() };
                self.now = wake + (mean * factor) as Nanos;
                self.alarm.learn(self.now);
            }
            self.now - due
        }

        /// Wait for many such events; return how late each was noticed, sorted.
        fn lateness_of(&mut self, count: usize, span: Nanos) -> Vec<Nanos> {
            (self.sleeps, self.awake) = (0, 0);
            let mut lateness: Vec<_> = (0..count).map(|_| self.wait(span)).collect();
            lateness.sort_unstable();
            lateness
        }
    }

    /// An idle virtual machine: 84 µs after 20 ms, 34 µs after a short sleep.
    fn idle(span: Nanos) -> Nanos {
        34_000 + span.min(LONG) / 400
    }

    /// Busy: the processor never sleeps.
    fn busy(_: Nanos) -> Nanos {
        5_000
    }

    #[test]
    fn an_idle_machine_is_on_time_from_the_first_deadlines_on_with_few_sleeps() {
        // The process may spend 39 µs of 5 ms awake, which can be less than a sleep's lateness.
        for (span, median) in [(LONG, 1_000), (LONG / 4, 25_000), (19 * LONG, 1_000)] {
            let mut machine = Machine::new(idle);
            let lateness = machine.lateness_of(200, span);
            assert!(lateness[100] <= median && lateness[180] <= median + 10_000, "{lateness:?}");
            // A few sleeps are later, until the worst lateness is known.
            assert!(lateness[196] <= 50_000, "{lateness:?}");
            assert!(machine.sleeps <= 3 * 200, "{} sleeps", machine.sleeps);
            assert!(machine.awake <= 200 * span / MOST_OF_A_WAIT, "{} ns awake", machine.awake);
        }
    }

    #[test]
    fn short_waits_in_a_row_cost_little() {
        let mut machine = Machine::new(idle);
        machine.lateness_of(1000, 1_142_857);
        assert!(machine.sleeps <= 2 * 1000, "{} sleeps", machine.sleeps);
        let per_wait = machine.awake / 1000;
        assert!(per_wait <= TOO_SHORT + 1_142_857 / MOST_OF_A_WAIT, "{per_wait} ns awake");
    }

    #[test]
    fn a_busy_machine_is_not_made_busier() {
        let mut machine = Machine::new(busy);
        machine.alarm.wake_at(0, LONG);
        machine.alarm.learn(LONG + 50 * NANOS_PER_MILLISECOND);
        machine.lateness_of(1000, LONG);
        let lateness = machine.lateness_of(1000, LONG);
        assert!(lateness[990] <= 15_000, "{lateness:?}");
        assert!(machine.awake / 1000 <= 2 * TOO_SHORT, "{} ns awake", machine.awake / 1000);
        assert!(machine.sleeps <= 2 * 1000, "{} sleeps", machine.sleeps);
    }

    #[test]
    fn one_late_sleep_is_forgotten_in_the_end() {
        let mut alarm = Alarm::default();
        let mut sleep = |lateness| {
            let wake = alarm.wake_at(0, LONG);
            alarm.learn(wake + lateness);
            LONG - wake
        };
        sleep(400_000);
        assert_eq!(sleep(20_000), 600_000);
        assert_eq!((0..1000).map(|_| sleep(20_000)).last(), Some(30_000));
    }

    #[test]
    fn a_wait_goes_on_when_packets_interrupt_the_sleep() {
        let mut alarm = Alarm::default();
        alarm.wake_at(0, LONG);
        // 55 µs before the end of this long wait, the process may stay awake for the rest of it; in a wait of 55 µs in
        // all, it may not.
        let wake = alarm.wake_at(LONG - 55_000, LONG);
        assert_eq!(wake, LONG - 55_000);
        assert!(Alarm::default().wake_at(LONG - 55_000, LONG) > wake);
    }
}
