//! What `quinn_server` and `masque_proxy` share: how their connections send, and what these take from a stranger.

pub mod bounded;
pub mod congestion;
pub mod connection_log;
pub mod cubic;
pub mod loss_based;
pub mod reno;
