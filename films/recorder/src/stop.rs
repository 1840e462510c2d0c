//! When to stop: like FFmpeg, when `q` comes on standard input or standard input ends; also at a signal.

use std::io::stdin;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::read;

use crate::error::{Attempt, Result};

/// The signals that stop a recording.
const SIGNALS: [Signal; 3] = [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP];

pub struct Stop {
    signals: SignalFd,
}

impl Stop {
    /// Watch for a reason to stop from now on. SIGNALS no longer end this process.
    pub fn watch() -> Result<Self> {
        let attempt = || "watch for signals";
        let set: SigSet = SIGNALS.into_iter().collect();
        set.thread_block().attempt(attempt)?;
        Ok(Self { signals: SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC).attempt(attempt)? })
    }

    /// Wait until it is time to stop, `descriptor` can be read, or `limit` is over. Returns whether it is time to stop.
    pub fn wait(&self, descriptor: Option<BorrowedFd<'_>>, limit: Option<Duration>) -> Result<bool> {
        let stdin = stdin();
        let watched = |descriptor| PollFd::new(descriptor, PollFlags::POLLIN);
        let mut all = vec![watched(self.signals.as_fd()), watched(stdin.as_fd())];
        all.extend(descriptor.map(watched));
        match ppoll(&mut all, limit.map(Into::into), None) {
            Err(Errno::EINTR) => return Ok(false),
            polled => polled.attempt(|| "wait for drawings")?,
        };
        let has_come = |polled: &PollFd<'_>| polled.any().unwrap_or(true);
        Ok(has_come(&all[0]) || has_come(&all[1]) && asks_to_stop(stdin.as_fd()))
    }
}

/// Whether `q` has come on standard input, or standard input has ended.
fn asks_to_stop(stdin: BorrowedFd<'_>) -> bool {
    let mut text = [0; 256];
    match read(stdin, &mut text) {
        Ok(length) => length == 0 || text[..length].contains(&b'q'),
        Err(Errno::EAGAIN | Errno::EINTR) => false,
        Err(_) => true,
    }
}
