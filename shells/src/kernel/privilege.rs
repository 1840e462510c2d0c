//! Working without root, if the kernel lets an ordinary user make namespaces.

use std::fs;

use nix::sched::{CloneFlags, unshare};
use nix::unistd::{getegid, geteuid};

use super::routes::{LOOPBACK, Routes};
use crate::error::{Attempt, Result, complain};

/// The number of `CAP_NET_ADMIN` (linux/capability.h).
const NET_ADMIN: u32 = 12;

/// Continue as root of a user namespace with its own network, unless this process may already administer the network.
/// Call this while the process has a single thread.
pub fn ensure() -> Result<()> {
    if may_administer_network() {
        return Ok(());
    }
    let (user, group) = (geteuid(), getegid());
    unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNET).attempt(|| {
        "make a user namespace (run as root, or let users have them: sysctl user.max_user_namespaces, \
         kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns)"
    })?;
    let map = |file: &str, text: String| {
        let path = format!("/proc/self/{file}");
        fs::write(&path, text).attempt(|| format!("write {path}"))
    };
    map("setgroups", "deny".to_owned())?;
    map("uid_map", format!("0 {user} 1"))?;
    map("gid_map", format!("0 {group} 1"))?;
    Routes::open()
        .and_then(|routes| routes.bring_up(LOOPBACK))
        .attempt(|| "bring up the loopback device of an own network")?;
    complain(&"not root, so the network outside is an empty one; only what runs inside can be reached");
    Ok(())
}

fn may_administer_network() -> bool {
    let status = fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let bits = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok());
    bits.is_some_and(|bits| bits >> NET_ADMIN & 1 == 1)
}
