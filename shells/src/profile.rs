//! Access networks by name, from the table that the whole testbed uses.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::error::{Error, Result};

const TABLE: &str = include_str!("../../tuning/networks.toml");

/// An access network; the meaning of each number is told in `tuning/networks.toml`.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
pub struct Profile {
    pub up_mbps: f64,
    pub down_mbps: f64,
    pub min_rtt_ms: f64,
    pub loss: f64,
    pub queue_ms: f64,
}

impl Profile {
    /// The network of that name.
    pub fn named(name: &str) -> Result<Self> {
        let table = table();
        table.get(name).copied().ok_or_else(|| {
            let names: Vec<_> = table.into_keys().collect();
            Error::new(format!("there is no profile '{name}'; choose one of {}", names.join(", ")))
        })
    }
}

fn table() -> BTreeMap<String, Profile> {
    toml::from_str(TABLE).expect("tuning/networks.toml is tested to parse")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_four_networks_are_there() {
        for name in ["dsl", "lte", "da2gc", "mss"] {
            assert!(Profile::named(name).unwrap().min_rtt_ms > 0.0);
        }
        assert_eq!(Profile::named("lte").unwrap().down_mbps, 10.5);
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let error = Profile::named("isdn").unwrap_err().to_string();
        assert!(error.contains("isdn") && error.contains("da2gc"), "{error}");
    }
}
