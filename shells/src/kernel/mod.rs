//! Everything that needs the kernel: namespaces, TUN devices, addresses, processes, waiting.
//!
//! Nothing here depends on how elements change packets.

pub mod address_block;
mod alarm;
mod forwarder;
mod forwarding_path;
mod masquerade;
mod netlink;
mod privilege;
mod routes;
mod signals;
mod stamps;
mod supervisor;
mod sysctl;
mod timekeeping;
mod tun;
mod tun_pair;

pub use forwarder::{Forwarder, Report};
pub use supervisor::Supervisor;
pub use timekeeping::Timekeeping;
pub use tun::LARGEST_READ;
pub use tun_pair::{TunPair, open_tun_pair};
