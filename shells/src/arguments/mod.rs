//! The options that all shells share.

mod inside;
mod seed;

pub use inside::Inside;
pub use seed::SeedOption;
