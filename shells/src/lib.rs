//! Network emulation shells: run a command in a network namespace of its own, behind a link that
//! delays, throttles and drops packets.
//!
//! What happens to packets ([`element`], [`queue`], [`trace`]) knows nothing of the kernel: it is given
//! packets and the time. Everything the kernel must be asked for (namespaces, TUN devices, addresses,
//! processes) is in [`kernel`]. [`shell`] puts the two together for the commands in `src/bin`.

pub mod arguments;
pub mod element;
pub mod error;
pub mod kernel;
pub mod link;
pub mod log;
pub mod packet;
pub mod queue;
pub mod random;
pub mod shell;
pub mod time;
pub mod trace;
pub mod units;
