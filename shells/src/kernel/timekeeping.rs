//! Help from the kernel for exact times: it may run this process before ordinary ones, and record when packets arrive.

use std::fmt;

use nix::libc;
use nix::sys::prctl;

use crate::error::{Attempt, Result};

/// The means by which the emulation kept time. It also works without them, but is late more often.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timekeeping {
    /// Whether this process ran before all ordinary ones. This is allowed to root, and to users with a limit for it
    /// (RLIMIT_RTPRIO).
    pub real_time_priority: bool,
    /// Whether the kernel recorded when packets arrived ([`super::stamps`]). Only root may use this.
    pub kernel_stamps: bool,
}

impl fmt::Display for Timekeeping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match (self.real_time_priority, self.kernel_stamps) {
            (true, true) => "real-time priority, kernel stamps",
            (true, false) => "real-time priority",
            (false, true) => "kernel stamps",
            (false, false) => "ordinary priority",
        })
    }
}

/// Let the kernel wake this process without delay.
pub fn wake_up_on_time() -> Result<()> {
    // With the default slack, every wake-up could be 50 µs late.
    prctl::set_timerslack(1).attempt(|| "ask for exact timers")?;
    // Run before ordinary processes: like a real link, the emulated link must not wait for the processor when the
    // machine is busy. If this is not allowed, lateness is still counted.
    let parameters = libc::sched_param { sched_priority: 1 };
    // SAFETY: the structure outlives the call.
    unsafe {
        libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &raw const parameters)
    };
    Ok(())
}

/// Whether this process runs before ordinary ones, according to the kernel.
pub fn has_real_time_priority() -> bool {
    // SAFETY: takes a number, touches no memory.
    unsafe { libc::sched_getscheduler(0) & !libc::SCHED_RESET_ON_FORK == libc::SCHED_FIFO }
}
