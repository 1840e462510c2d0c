//! What the shells' command lines have in common.

mod delay;
mod inside;
mod link;
mod loss;
mod on_off;
mod seed;

pub use delay::DelayArguments;
pub use inside::Inside;
pub use link::{LinkArguments, LinkParts};
pub use loss::{LossArguments, LossParts};
pub use on_off::{Direction, OnOffArguments};
pub use seed::SeedArgument;
