//! Repeatable random choices.

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

use crate::time::Nanos;

/// The source of an emulated network's random choices.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seed(Option<u64>);

impl Seed {
    /// With a seed, every choice is repeatable; without one, the choices cannot be predicted.
    #[must_use]
    pub fn new(seed: Option<u64>) -> Self {
        Self(seed)
    }

    /// The generator for one purpose, such as `loss uplink`. Purposes are independent, so an element makes the same
    /// choices whatever other elements exist.
    #[must_use]
    pub fn generator(self, purpose: &str) -> Random {
        match self.0 {
            None => Random(Pcg64::from_os_rng()),
            Some(seed) => Random::from_seed(seed ^ fnv1a(purpose)),
        }
    }
}

/// The generator of every random choice; PCG64's stream for a seed never changes.
#[derive(Clone, Debug)]
pub struct Random(Pcg64);

impl Random {
    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        Self(Pcg64::seed_from_u64(seed))
    }

    /// A number in the range from 0 to 1, without 1.
    pub fn fraction(&mut self) -> f64 {
        self.0.random()
    }

    /// A span from the exponential distribution with this mean.
    pub fn exponential(&mut self, mean: Nanos) -> Nanos {
        (-(1.0 - self.fraction()).ln() * mean as f64) as Nanos
    }

    /// How often something fails before it first succeeds, each time with the given probability of failure: a number
    /// from the geometric distribution.
    pub fn failures(&mut self, probability: f64) -> u64 {
        ((1.0 - self.fraction()).ln() / probability.ln()) as u64
    }

    /// True with the given probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.fraction() < probability
    }
}

/// The FNV-1a hash, 64 bits.
fn fnv1a(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choices(mut random: Random) -> Vec<bool> {
        (0..64).map(|_| random.chance(0.5)).collect()
    }

    #[test]
    fn a_seed_repeats_its_choices_for_each_purpose() {
        let seed = Seed::new(Some(7));
        assert_eq!(choices(seed.generator("uplink")), choices(seed.generator("uplink")));
        assert_ne!(choices(seed.generator("uplink")), choices(seed.generator("downlink")));
        assert_ne!(choices(seed.generator("uplink")), choices(Seed::new(Some(8)).generator("uplink")));
    }

    #[test]
    fn exponential_spans_have_their_mean() {
        let mut random = Random::from_seed(1);
        let sum: Nanos = (0..100_000).map(|_| random.exponential(1000)).sum();
        assert!((98_500..101_500).contains(&(sum / 1000)), "{sum}");
    }

    #[test]
    fn without_a_seed_nothing_repeats() {
        let seed = Seed::default();
        assert_ne!(choices(seed.generator("uplink")), choices(seed.generator("uplink")));
    }
}
