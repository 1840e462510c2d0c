//! Network settings of the current namespace, under /proc/sys/net.

use crate::error::{Attempt, Result};

/// The value of `/proc/sys/net/{key}`, if it can be read.
pub fn get(key: &str) -> Option<String> {
    let value = std::fs::read_to_string(format!("/proc/sys/net/{key}")).ok()?;
    Some(value.trim_end().to_owned())
}

/// Set `/proc/sys/net/{key}`.
pub fn set(key: &str, value: &str) -> Result<()> {
    let path = format!("/proc/sys/net/{key}");
    std::fs::write(&path, value).attempt(|| format!("write {value} to {path} (is /proc/sys writable here?)"))
}
