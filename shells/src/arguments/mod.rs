//! The options that all shells share.

mod inside;
mod man_page;
mod seed;

pub use inside::Inside;
pub use man_page::{parsed, print_man_page_if_asked};
pub use seed::SeedOption;
