//! What the shells' command lines have in common.

mod inside;
mod link;
mod seed;

pub use inside::Inside;
pub use link::{LinkArguments, LinkParts};
pub use seed::SeedArgument;
