//! Random loss.

use std::collections::VecDeque;

use super::{Departure, Element};
use crate::packet::Packet;
use crate::random::Random;
use crate::time::Nanos;

/// How packets are chosen to be lost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LossModel {
    /// Each with the same probability, whatever happened to the others.
    Independent { probability: f64 },
    /// In bursts (Gilbert 1960, Elliott 1963): the network is good or bad, may change with each packet, and
    /// loses packets with a probability that depends on it.
    GilbertElliott { good_to_bad: f64, bad_to_good: f64, loss_in_bad: f64, loss_in_good: f64 },
}

impl LossModel {
    /// Bursts of a mean length in packets, all of whose packets are lost, that make up a loss on average.
    ///
    /// `None` when no such bursts exist: they must be at least one packet long, and so long that a network
    /// that is mostly bad can still become good in between.
    #[must_use]
    pub fn bursts(probability: f64, mean_packets: f64) -> Option<Self> {
        let bad_to_good = 1.0 / mean_packets;
        let good_to_bad = bad_to_good * probability / (1.0 - probability);
        let possible = mean_packets >= 1.0 && probability < 1.0 && good_to_bad <= 1.0;
        possible.then_some(Self::GilbertElliott {
            good_to_bad,
            bad_to_good,
            loss_in_bad: 1.0,
            loss_in_good: 0.0,
        })
    }

    fn never_loses(self) -> bool {
        self == Self::Independent { probability: 0.0 }
    }
}

/// Loses packets after a model.
#[derive(Debug)]
pub struct Loss {
    model: LossModel,
    /// The state of a network that is good or bad; it starts good.
    bad: bool,
    random: Random,
    passed: VecDeque<Departure>,
}

impl Loss {
    #[must_use]
    pub fn new(model: LossModel, random: Random) -> Self {
        Self { model, bad: false, random, passed: VecDeque::new() }
    }

    /// Whether the next packet is lost.
    fn loses(&mut self) -> bool {
        match self.model {
            LossModel::Independent { probability } => self.random.chance(probability),
            LossModel::GilbertElliott { good_to_bad, bad_to_good, loss_in_bad, loss_in_good } => {
                let (change, loss) =
                    if self.bad { (bad_to_good, loss_in_bad) } else { (good_to_bad, loss_in_good) };
                let lost = self.random.chance(loss);
                self.bad ^= self.random.chance(change);
                lost
            }
        }
    }
}

impl Element for Loss {
    fn push(&mut self, packet: Packet, now: Nanos) {
        if self.model.never_loses() {
            self.passed.push_back(Departure { packet, at: now });
            return;
        }
        for packet in packet.into_segments() {
            if !self.loses() {
                self.passed.push_back(Departure { packet, at: now });
            }
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

    /// Which of so many packets are lost.
    fn lost(model: LossModel, packets: usize) -> Vec<bool> {
        let mut loss = Loss::new(model, Random::from_seed(1));
        let mut lost = vec![true; packets];
        for number in 0..packets {
            loss.push(Packet::new(&[0; 20]), number as Nanos);
        }
        for kept in std::iter::from_fn(|| loss.pop(packets as Nanos)) {
            lost[kept.at as usize] = false;
        }
        lost
    }

    fn count(lost: &[bool]) -> usize {
        lost.iter().filter(|lost| **lost).count()
    }

    #[test]
    fn probability_0_keeps_all_and_1_none() {
        assert_eq!(count(&lost(LossModel::Independent { probability: 0.0 }, 1000)), 0);
        assert_eq!(count(&lost(LossModel::Independent { probability: 1.0 }, 1000)), 1000);
    }

    #[test]
    fn independent_loss_is_within_binomial_bounds() {
        let (packets, probability) = (100_000, 0.030_464);
        let lost = count(&lost(LossModel::Independent { probability }, packets)) as f64;
        let mean = packets as f64 * probability;
        let deviation = (mean * (1.0 - probability)).sqrt();
        assert!((lost - mean).abs() < 4.0 * deviation, "lost {lost}, expected {mean} ± {deviation}");
    }

    #[test]
    fn bursts_have_their_mean_length_and_make_up_the_loss() {
        let packets = 1_000_000;
        let lost = lost(LossModel::bursts(0.02, 4.0).unwrap(), packets);
        let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        let mean_length = count(&lost) as f64 / bursts as f64;
        assert!((mean_length - 4.0).abs() < 0.15, "{mean_length}");
        let loss = count(&lost) as f64 / packets as f64;
        assert!((loss - 0.02).abs() < 0.001, "{loss}");
    }

    #[test]
    fn impossible_bursts_are_none() {
        assert_eq!(LossModel::bursts(0.1, 0.5), None);
        assert_eq!(LossModel::bursts(0.9, 2.0), None);
        assert_eq!(LossModel::bursts(1.0, 2.0), None);
    }
}
