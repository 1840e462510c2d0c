//! A link that repairs its losses itself.

use super::{Departure, Element, Outbox};
use crate::packet::Packet;
use crate::random::Random;
use crate::time::Nanos;

/// Repeats each packet that is lost until it arrives (ARQ: RFC 3366, the perfectly persistent kind), and keeps the order:
/// whatever follows such a packet waits for it. So nothing is lost, and what would be is late.
///
/// Each try fails with the same probability, whatever happened to the others, and costs the same time. The repeats of
/// several packets go on side by side (selective repeat). They take nothing of a link's rate.
#[derive(Debug)]
pub struct Retransmission {
    probability: f64,
    /// What a try that fails costs.
    repeat: Nanos,
    first_tries: Random,
    repeats: Random,
    outbox: Outbox,
}

impl Retransmission {
    /// With the generator of [`super::Loss`] for the `first_tries`, the packets are hit that it would lose.
    ///
    /// # Panics
    /// At probability 1, with which nothing ever arrives.
    #[must_use]
    pub fn new(probability: f64, repeat: Nanos, first_tries: Random, repeats: Random) -> Self {
        assert!(probability < 1.0, "a link that loses everything never repairs it");
        Self { probability, repeat, first_tries, repeats, outbox: Outbox::default() }
    }

    /// How often the next packet is sent in vain.
    fn failed_tries(&mut self) -> u64 {
        if !self.first_tries.chance(self.probability) {
            return 0;
        }
        self.repeats.failures(self.probability).saturating_add(1)
    }
}

impl Element for Retransmission {
    fn push(&mut self, packet: Packet, now: Nanos) {
        for packet in packet.into_segments() {
            let repaired = now.saturating_add(self.failed_tries().saturating_mul(self.repeat));
            let in_order = self.outbox.last().map_or(repaired, |last| repaired.max(last));
            self.outbox.push(packet, in_order);
        }
    }

    fn pop(&mut self, now: Nanos) -> Option<Departure> {
        self.outbox.pop(now)
    }

    fn next_due(&self) -> Option<Nanos> {
        self.outbox.next_due()
    }

    fn earliest_exit(&self, arrival: Nanos) -> Nanos {
        self.outbox.last().map_or(arrival, |last| last.max(arrival))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::{Loss, LossModel, LossObservers};

    const REPEAT: Nanos = 1000;

    /// When packets leave that arrive at these times.
    fn departures(probability: f64, arrivals: impl Iterator<Item = Nanos>) -> Vec<Nanos> {
        let (first_tries, repeats) = (Random::from_seed(1), Random::from_seed(2));
        let mut link = Retransmission::new(probability, REPEAT, first_tries, repeats);
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
    fn a_loss_of_nearly_everything_takes_no_time_to_compute() {
        assert!(departures(1.0 - f64::EPSILON, 0..100).is_sorted());
    }
}
