//! Files that record what happens in the emulated network.

mod mahimahi;
mod meter;
mod output;
mod packets;
mod pcapng;

pub use mahimahi::{LinkDescription, MahimahiLog};
pub use meter::{Meter, Side};
pub use output::{Output, Outputs};
pub use packets::PacketLog;
pub use pcapng::Capture;
