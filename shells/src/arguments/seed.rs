//! `--seed`.

use clap::Args;

use crate::random::Seed;

/// Makes random choices repeatable.
#[derive(Args, Clone, Copy, Debug)]
#[command(next_help_heading = "Options")]
pub struct SeedOption {
    /// Repeat the random choices of another run with the same number
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
}

impl SeedOption {
    #[must_use]
    pub fn seed(self) -> Seed {
        Seed::new(self.seed)
    }
}
