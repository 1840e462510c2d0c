//! Independent random loss.

use std::collections::VecDeque;

use super::{Departure, Element};
use crate::packet::Packet;
use crate::random::Random;
use crate::time::Nanos;

/// Drops each packet with the same probability, whatever happened to the others.
#[derive(Debug)]
pub struct Loss {
    probability: f64,
    random: Random,
    passed: VecDeque<Departure>,
}

impl Loss {
    #[must_use]
    pub fn new(probability: f64, random: Random) -> Self {
        Self {
            probability,
            random,
            passed: VecDeque::new(),
        }
    }
}

impl Element for Loss {
    fn push(&mut self, packet: Packet, now: Nanos) {
        if self.probability == 0.0 {
            self.passed.push_back(Departure { packet, at: now });
            return;
        }
        for packet in packet.into_segments() {
            if !self.random.chance(self.probability) {
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

    fn survivors(probability: f64, packets: usize) -> usize {
        let mut loss = Loss::new(probability, Random::from_seed(1));
        for now in 0..packets {
            loss.push(Packet::new(&[0; 20]), now as Nanos);
        }
        std::iter::from_fn(|| loss.pop(packets as Nanos)).count()
    }

    #[test]
    fn probability_0_keeps_all_and_1_none() {
        assert_eq!(survivors(0.0, 1000), 1000);
        assert_eq!(survivors(1.0, 1000), 0);
    }

    #[test]
    fn loss_is_within_binomial_bounds() {
        let (packets, probability) = (100_000, 0.030_464);
        let lost = (packets - survivors(probability, packets)) as f64;
        let mean = packets as f64 * probability;
        let deviation = (mean * (1.0 - probability)).sqrt();
        assert!(
            (lost - mean).abs() < 4.0 * deviation,
            "lost {lost}, expected {mean} ± {deviation}"
        );
    }
}
