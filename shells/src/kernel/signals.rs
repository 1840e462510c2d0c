//! Signals as events to wait for.

use std::mem::MaybeUninit;
use std::ptr;

use nix::libc;
use nix::sys::signal::{SigSet, SigmaskHow, Signal, sigprocmask};
use nix::sys::signalfd::{SfdFlags, SignalFd};

use crate::error::{Attempt, Result};

/// A signal that has arrived.
#[derive(Clone, Copy, Debug)]
pub struct Received {
    pub signal: Signal,
    /// Whether a process sent it, with kill(2) or similar. Ctrl-C at the terminal comes from the kernel, which sends it
    /// to every process of the foreground group.
    pub from_process: bool,
}

/// Block these signals, and receive them through a descriptor.
pub fn watch(signals: &[Signal]) -> Result<SignalFd> {
    let set: SigSet = signals.iter().copied().collect();
    sigprocmask(SigmaskHow::SIG_BLOCK, Some(&set), None)
        .and_then(|()| SignalFd::with_flags(&set, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC))
        .attempt(|| "watch for signals")
}

/// Unblock every signal: a command inherits the mask, and signals must be able to end it.
pub fn unblock_all() {
    let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None);
}

/// The given signals without those that this process ignores.
///
/// nohup, and scripts for their background jobs, start processes with signals ignored, which must then have no effect
/// on the process or its children. The kernel delivers even an ignored signal while it is blocked.
pub fn not_ignored(signals: &[Signal]) -> Vec<Signal> {
    signals.iter().copied().filter(|signal| !is_ignored(*signal)).collect()
}

fn is_ignored(signal: Signal) -> bool {
    let mut action = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: without a new action the call only fills the structure, for which all zeros are valid.
    unsafe {
        let result = libc::sigaction(signal as libc::c_int, ptr::null(), action.as_mut_ptr());
        result == 0 && action.assume_init().sa_sigaction == libc::SIG_IGN
    }
}

/// The next signal that has arrived, if any.
pub fn next(descriptor: &SignalFd) -> Option<Received> {
    let info = descriptor.read_signal().ok().flatten()?;
    let signal = Signal::try_from(info.ssi_signo as i32).ok()?;
    Some(Received { signal, from_process: info.ssi_code <= 0 })
}
