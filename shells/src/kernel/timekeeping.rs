//! The kernel's help in keeping time: it may run this process before ordinary ones, and say when packets came
//! in.

use std::fmt;

use nix::libc;
use nix::sys::prctl;

use crate::error::{Attempt, Result};

/// The means by which the emulation kept time. It works without them, too, but is late more often.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timekeeping {
    /// Whether this process ran before all ordinary ones. Root may do so, and a user with a limit for it
    /// (RLIMIT_RTPRIO).
    pub real_time_priority: bool,
    /// Whether the kernel noted when packets came in ([`super::stamps`]). Only root may have that.
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
    // The default slack would let every wake-up be 50 µs late.
    prctl::set_timerslack(1).attempt(|| "ask for exact timers")?;
    // Before ordinary processes: on a busy machine the emulated link must not wait for the processor, as a real link does
    // not. Where this is not granted, lateness is counted all the same.
    let parameters = libc::sched_param { sched_priority: 1 };
    // SAFETY: the structure outlives the call.
    unsafe {
        libc::sched_setscheduler(0, libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK, &raw const parameters)
    };
    Ok(())
}

/// Whether this process runs before ordinary ones, as the kernel has it now.
pub fn has_real_time_priority() -> bool {
    // SAFETY: takes a number, touches no memory.
    unsafe { libc::sched_getscheduler(0) & !libc::SCHED_RESET_ON_FORK == libc::SCHED_FIFO }
}
