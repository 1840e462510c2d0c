//! Network emulation shells: run a command in its own network namespace, on a link that delays, throttles and drops
//! packets.
//!
//! The emulation ([`element`], [`queue`], [`trace`]) does not depend on the kernel: its callers pass packets and the
//! time. Everything that needs the kernel (namespaces, TUN devices, addresses, processes) is in [`kernel`]. [`shell`]
//! connects the two for the commands in `src/bin`.

pub mod arguments;
pub mod conditions;
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
