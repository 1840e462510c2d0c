//! Network settings of the current namespace, under /proc/sys/net.

use crate::error::{Attempt, Result};

/// Set `/proc/sys/net/{key}`.
pub fn set(key: &str, value: &str) -> Result<()> {
    let path = format!("/proc/sys/net/{key}");
    std::fs::write(&path, value).attempt(|| format!("write {value} to {path} (is /proc/sys writable here?)"))
}
