//! Files that tell what happened in the emulated network.

mod mahimahi;
mod output;

pub use mahimahi::{LinkDescription, MahimahiLog};
pub use output::{Output, Outputs};
