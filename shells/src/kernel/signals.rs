//! Signals as events to wait for, instead of interruptions.

use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::error::{Attempt, Result};

/// A signal that came in.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    pub signal: Signal,
    /// A process sent it with kill(2) or the like. The terminal's Ctrl-C is the kernel's, and reaches
    /// every process of the foreground group by itself.
    pub from_process: bool,
}

/// AddressBlock these signals and wait for them through a descriptor instead.
pub fn watch(signals: &[Signal]) -> Result<SignalFd> {
    let set: SigSet = signals.iter().copied().collect();
    sigprocmask(SigmaskHow::SIG_BLOCK, Some(&set), None)
        .and_then(|()| SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC))
        .attempt(|| "watch for signals")
}

/// Let every signal through again: a command inherits the mask, and must be able to be ended.
pub fn unblock_all() {
    let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None);
}

/// The next signal that came in, if any.
pub fn next(watched: &SignalFd) -> Option<Received> {
    let info = watched.read_signal().ok().flatten()?;
    let signal = Signal::try_from(info.ssi_signo as i32).ok()?;
    Some(Received { signal, from_process: info.ssi_code <= 0 })
}
