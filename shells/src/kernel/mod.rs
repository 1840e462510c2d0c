//! Everything the kernel is asked for: namespaces, TUN devices, addresses, processes, waiting.
//!
//! Nothing here knows what an element does to packets.

mod alarm;
pub mod block;
mod direction;
mod ferry;
mod guardian;
mod masquerade;
mod namespace;
mod netlink;
mod privilege;
mod routes;
mod signals;
mod stamps;
mod sysctl;
mod tun;

pub use ferry::{Ferry, Report};
pub use guardian::Guardian;
pub use namespace::{Passage, open_passage};
pub use tun::LARGEST_READ;
