//! Random choices that can be repeated.

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64;

/// The generator behind every random choice; PCG64's stream for a seed never changes.
#[derive(Clone, Debug)]
pub struct Random(Pcg64);

impl Random {
    /// A generator that nobody can foretell, seeded by the kernel.
    #[must_use]
    pub fn from_kernel() -> Self {
        Self(Pcg64::from_os_rng())
    }

    #[must_use]
    pub fn from_seed(seed: u64) -> Self {
        Self(Pcg64::seed_from_u64(seed))
    }

    /// True with the given probability.
    pub fn chance(&mut self, probability: f64) -> bool {
        self.0.random::<f64>() < probability
    }
}
