//! A link that repairs its own losses.

use super::{Departure, Element, LossObservers, Order, Outbox};
use crate::packet::Packet;
use crate::random::Random;
use crate::time::Nanos;

/// How a link repeats lost packets.
#[derive(Clone, Copy, Debug)]
pub struct Persistence {
    /// The time that a failed try costs.
    pub repeat: Nanos,
    /// The most tries of a packet, the first included; then it is lost. `None`: no limit.
    pub tries: Option<u64>,
    /// Whether later packets wait until an earlier one has arrived or is lost.
    pub order: Order,
}

/// Repeats each lost packet until it arrives (ARQ: RFC 3366) or its tries are used up. So packets are late instead of
/// lost, unless all their tries fail.
///
/// Each try fails with the same probability, independently of the others, and costs the same time. The repeats of
/// several packets overlap (selective repeat). They do not use up any of a link's rate.
pub struct Retransmission {
    probability: f64,
    persistence: Persistence,
    first_tries: Random,
    repeats: Random,
    /// When the last of the packets so far arrived or was given up.
    settled: Nanos,
    observers: LossObservers,
    outbox: Outbox,
}

impl Retransmission {
    /// If `first_tries` is the generator of a [`super::Loss`], exactly the packets that it would lose are repeated.
    ///
    /// # Panics
    /// At probability 1, because nothing would ever arrive.
    #[must_use]
    pub fn new(
        probability: f64,
        persistence: Persistence,
        first_tries: Random,
        repeats: Random,
        observers: LossObservers,
    ) -> Self {
        assert!(probability < 1.0, "a link that loses everything never repairs it");
        let outbox = Outbox::default();
        Self { probability, persistence, first_tries, repeats, settled: 0, observers, outbox }
    }

    /// The number of failed tries of the next packet.
    fn failed_tries(&mut self) -> u64 {
        if !self.first_tries.chance(self.probability) {
            return 0;
        }
        self.repeats.failures(self.probability).saturating_add(1)
    }
}

impl Element for Retransmission {
    fn push(&mut self, packet: Packet, now: Nanos) {
        let Persistence { repeat, tries, order } = self.persistence;
        for packet in packet.into_segments() {
            let failed = self.failed_tries();
            let most = tries.unwrap_or(u64::MAX);
            let after_repeats = now.saturating_add(failed.min(most).saturating_mul(repeat));
            let at = match order {
                Order::OfArrival => after_repeats.max(self.settled),
                Order::Any => after_repeats,
            };
            self.settled = self.settled.max(at);
            if failed < most {
                self.outbox.push(packet, at);
            } else {
                self.observers.lost(&packet, now);
            }
        }
    }

    fn pop(&mut self, now: Nanos) -> Option<Departure> {
        self.outbox.pop(now)
    }

    fn next_due(&self) -> Option<Nanos> {
        self.outbox.next_due()
    }

    fn earliest_exit(&self, arrival: Nanos) -> Nanos {
        match self.persistence.order {
            Order::OfArrival => arrival.max(self.settled),
            Order::Any => arrival,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::{Loss, LossModel, LossObservers};

    const REPEAT: Nanos = 1000;

    /// When packets that arrive at these times leave.
    fn departures(probability: f64, arrivals: impl Iterator<Item = Nanos>) -> Vec<Nanos> {
        departures_after(probability, None, Order::OfArrival, arrivals)
    }

    fn departures_after(
        probability: f64,
        tries: Option<u64>,
        order: Order,
        arrivals: impl Iterator<Item = Nanos>,
    ) -> Vec<Nanos> {
        let (first_tries, repeats) = (Random::from_seed(1), Random::from_seed(2));
        let persistence = Persistence { repeat: REPEAT, tries, order };
        let mut link =
            Retransmission::new(probability, persistence, first_tries, repeats, LossObservers::default());
        for now in arrivals {
            link.push(Packet::new(&[0; 20]), now);
        }
        std::iter::from_fn(|| link.pop(Nanos::MAX)).map(|departure| departure.at).collect()
    }

    #[test]
    fn the_packets_are_late_that_would_be_lost() {
        let (packets, probability, pause) = (100_000, 0.03, 1_000_000);
        let mut loss =
            Loss::new(LossModel::Independent { probability }, Random::from_seed(1), LossObservers::default());
        for number in 0..packets {
            loss.push(Packet::new(&[0; 20]), number * pause);
        }
        let kept: Vec<_> =
            std::iter::from_fn(|| loss.pop(Nanos::MAX)).map(|departure| departure.at).collect();
        let departures = departures(probability, (0..packets).map(|number| number * pause));
        assert_eq!(departures.len() as u64, packets, "nothing is lost");
        let on_time: Vec<_> = departures.iter().copied().filter(|at| at % pause == 0).collect();
        assert_eq!(on_time, kept);
    }

    #[test]
    fn each_failed_try_costs_the_same_and_their_number_is_geometric() {
        let (packets, probability, pause) = (100_000, 0.3, 1_000_000);
        let departures = departures(probability, (0..packets).map(|number| number * pause));
        let failed_tries: Vec<_> = departures.iter().map(|at| (at % pause) / REPEAT).collect();
        assert!(departures.iter().all(|at| at % REPEAT == 0));
        for tries in 1..5 {
            let share =
                failed_tries.iter().filter(|failed| **failed >= tries).count() as f64 / packets as f64;
            let expected = probability.powi(tries as i32);
            let deviation = (expected * (1.0 - expected) / packets as f64).sqrt();
            assert!((share - expected).abs() < 4.0 * deviation, "{tries}: {share}, not {expected}");
        }
    }

    #[test]
    fn what_follows_a_late_packet_waits_for_it_and_no_longer() {
        let arrivals: Vec<_> = (0..10_000).map(|number| number * 10).collect();
        let departures = departures(0.03, arrivals.iter().copied());
        assert!(departures.is_sorted());
        let mut latest = 0;
        let mut waited = 0;
        for (arrival, departure) in arrivals.into_iter().zip(departures) {
            let failed = (departure - arrival) / REPEAT;
            let is_late = (departure - arrival) % REPEAT == 0 && failed > 0;
            assert!(is_late || departure == latest.max(arrival), "{arrival} left at {departure}");
            waited += usize::from(departure == latest && departure > arrival);
            latest = departure;
        }
        assert!(waited > 5_000, "{waited}");
    }

    #[test]
    fn what_fails_in_all_tries_is_lost() {
        let (packets, probability, pause) = (100_000, 0.3, 1_000_000);
        let departures =
            departures_after(probability, Some(3), Order::Any, (0..packets).map(|number| number * pause));
        let expected = probability.powi(3);
        let lost = 1.0 - departures.len() as f64 / packets as f64;
        let deviation = (expected * (1.0 - expected) / packets as f64).sqrt();
        assert!((lost - expected).abs() < 4.0 * deviation, "{lost}, not {expected}");
        assert_eq!(departures.iter().map(|at| (at % pause) / REPEAT).max(), Some(2));
    }

    #[test]
    fn what_follows_a_packet_that_is_given_up_waits_until_then() {
        // With two tries of 1000 ns each, a packet is given up 2000 ns after its arrival.
        let arrivals: Vec<_> = (0..10_000).map(|number| number * 10_000).collect();
        let both = arrivals.iter().flat_map(|at| [*at, at + 1]);
        let departures = departures_after(0.3, Some(2), Order::OfArrival, both);
        let delays: Vec<_> = departures.iter().map(|at| at % 10_000).collect();
        assert!(departures.is_sorted());
        for expected in [0, 1, 1000, 1001, 2000] {
            assert!(delays.contains(&expected), "{expected}");
        }
        assert_eq!(delays.iter().max(), Some(&2000));
    }

    #[test]
    fn where_order_is_not_kept_a_packet_waits_for_itself_alone() {
        let arrivals: Vec<_> = (0..10_000).map(|number| number * 10).collect();
        let departures = departures_after(0.03, None, Order::Any, arrivals.iter().copied());
        assert_eq!(departures.len(), arrivals.len());
        let on_time = departures.iter().filter(|at| **at < 100_000).count();
        // The outbox gives them in the order of their times.
        assert!(departures.is_sorted() && on_time > 9_650, "{on_time}");
        let late = arrivals.iter().filter(|at| !departures.contains(at)).count();
        assert!((240..360).contains(&late), "{late}");
    }

    #[test]
    fn a_loss_of_nearly_everything_takes_no_time_to_compute() {
        assert!(departures(1.0 - f64::EPSILON, 0..100).is_sorted());
    }
}
