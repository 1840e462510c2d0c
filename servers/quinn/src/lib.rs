//! The common part of `quinn_server` and `masque_proxy`: how their connections send, and the limits on what they accept
//! from a stranger.

pub mod bounded;
pub mod congestion;
pub mod connection_log;
pub mod cubic;
pub mod loss_based;
pub mod reno;
