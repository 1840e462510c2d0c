//! The process between a shell and its command, which ends every process of the command when either ends.
//!
//! It is the parent of the command, and adopts orphaned processes of the command. The shell holds the only writing end
//! of a pipe to it. When this end closes, however the shell ended, the supervisor kills everything.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sched::{CloneFlags, setns};
use nix::sys::prctl;
use nix::sys::signal::{Signal, kill};
use nix::sys::signalfd::SignalFd;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::{ForkResult, Pid, fork, getpid, getppid, pipe2};

use super::signals;
use crate::error::{Attempt, Result, complain};

/// The signals that a shell passes on to its command, unless they are ignored.
pub const FORWARDED: [Signal; 4] = [Signal::SIGINT, Signal::SIGQUIT, Signal::SIGTERM, Signal::SIGHUP];

/// How long after SIGTERM the command's remaining processes are killed.
const GRACE: Duration = Duration::from_secs(1);

/// The shell's handle of the supervisor process. When it is dropped, all processes of the command are killed.
pub struct Supervisor {
    process: Pid,
    /// The writing end of a pipe that carries numbers of signals to pass on.
    orders: Option<File>,
}

impl Supervisor {
    /// Run the command in the namespace `inside`, under a supervisor.
    ///
    /// Call this while the process has a single thread and has already blocked the shell's signals.
    pub fn start(inside: &OwnedFd, command: Command) -> Result<Self> {
        adopt_orphans()?;
        let (orders_in, orders) = pipe2(OFlag::O_CLOEXEC).attempt(|| "make a pipe")?;
        // SAFETY: there is only one thread, so the child may do anything.
        match unsafe { fork() }.attempt(|| "start a process")? {
            ForkResult::Parent { child } => Ok(Self { process: child, orders: Some(orders.into()) }),
            ForkResult::Child => {
                drop(orders);
                let status = supervise(inside, command, orders_in.into()).unwrap_or_else(|error| {
                    complain(&error);
                    1
                });
                std::process::exit(status);
            }
        }
    }

    /// Pass a signal on to the command.
    pub fn forward(&self, signal: Signal) {
        // A supervisor that has just ended no longer reads; SIGCHLD reports its end.
        if let Some(mut orders) = self.orders.as_ref() {
            let _ = orders.write_all(&[signal as u8]);
        }
    }

    /// The command's exit status once the command and everything it started has ended; 128 + n for signal n.
    pub fn ended(&self) -> Option<i32> {
        match waitpid(self.process, Some(WaitPidFlag::WNOHANG)) {
            Ok(WaitStatus::StillAlive) => None,
            Ok(status) => {
                // Processes remain only if the supervisor itself was killed.
                end_descendants(Duration::ZERO);
                exit_status(status)
            }
            Err(_) => Some(1),
        }
    }
}

impl Drop for Supervisor {
    /// Let the supervisor end everything, and wait until it ends.
    fn drop(&mut self) {
        self.orders = None;
        let _ = waitpid(self.process, None);
    }
}

/// Start the command and wait for its end, for orders of the shell, or for the shell's end.
fn supervise(inside: &OwnedFd, command: Command, mut orders: File) -> Result<i32> {
    adopt_orphans()?;
    setns(inside, CloneFlags::CLONE_NEWNET).attempt(|| "enter the new network namespace")?;
    let mut watched = vec![Signal::SIGCHLD];
    watched.extend(signals::not_ignored(&FORWARDED));
    let signals = signals::watch(&watched)?;
    let child = start_command(command)?;
    loop {
        let mut events =
            [PollFd::new(orders.as_fd(), PollFlags::POLLIN), PollFd::new(signals.as_fd(), PollFlags::POLLIN)];
        match poll(&mut events, PollTimeout::NONE) {
            Err(Errno::EINTR) | Ok(_) => {}
            Err(error) => return Err(error).attempt(|| "wait for the command"),
        }
        let ordered = events[0].any().unwrap_or(true);
        if ordered {
            let mut order = [0];
            match orders.read(&mut order) {
                Ok(1) => {
                    if let Ok(signal) = Signal::try_from(i32::from(order[0])) {
                        let _ = kill(child, signal);
                    }
                }
                _ => {
                    end_descendants(Duration::ZERO);
                    return Ok(128 + Signal::SIGKILL as i32);
                }
            }
        }
        while let Some(received) = signals::next(&signals) {
            // A signal sent to the supervisor is meant for the command.
            if received.signal != Signal::SIGCHLD && received.from_process {
                let _ = kill(child, received.signal);
            }
        }
        if let Some(status) = reap(child) {
            end_descendants(GRACE);
            return Ok(status);
        }
    }
}

/// Reap processes that have ended; return the exit status of `awaited` if it is among them.
fn reap(awaited: Pid) -> Option<i32> {
    let mut status = None;
    while let Ok(ended) = waitpid(None, Some(WaitPidFlag::WNOHANG)) {
        match ended.pid() {
            None => break,
            Some(process) if process == awaited => status = exit_status(ended),
            Some(_) => {}
        }
    }
    status
}

/// The exit status as sh reports it; `None` while the process has not ended.
fn exit_status(status: WaitStatus) -> Option<i32> {
    match status {
        WaitStatus::Exited(_, code) => Some(code),
        WaitStatus::Signaled(_, signal, _) => Some(128 + signal as i32),
        _ => None,
    }
}

fn start_command(mut command: Command) -> Result<Pid> {
    let supervisor = getpid();
    // SAFETY: there is only one thread, so the child may do anything.
    match unsafe { fork() }.attempt(|| "start a process")? {
        ForkResult::Parent { child } => Ok(child),
        ForkResult::Child => {
            let _ = prctl::set_pdeathsig(Signal::SIGKILL);
            if getppid() != supervisor {
                std::process::exit(128 + Signal::SIGKILL as i32);
            }
            signals::unblock_all();
            let error = command.exec();
            let name = command.get_program().to_string_lossy().into_owned();
            let missing = error.kind() == std::io::ErrorKind::NotFound;
            complain(&format!("cannot run {name}: {error}"));
            // The exit statuses of sh.
            std::process::exit(if missing { 127 } else { 126 });
        }
    }
}

/// Become the parent of descendants whose own parent ends.
fn adopt_orphans() -> Result<()> {
    prctl::set_child_subreaper(true).attempt(|| "adopt orphaned processes")
}

/// End every descendant: with SIGTERM first if there is a grace period, then with SIGKILL until none is left.
fn end_descendants(grace: Duration) {
    let deadline = Instant::now() + grace;
    let mut signal = if grace.is_zero() { Signal::SIGKILL } else { Signal::SIGTERM };
    let Ok(children) = signals::watch(&[Signal::SIGCHLD]) else {
        return;
    };
    while has_children() {
        for process in descendants() {
            let _ = kill(process, signal);
        }
        // SIGTERM is sent once; SIGKILL repeatedly, since a process may fork just before it is killed.
        loop {
            while signals::next(&children).is_some() {}
            while waitpid(None, Some(WaitPidFlag::WNOHANG)).is_ok_and(|status| status.pid().is_some()) {}
            let left = deadline.saturating_duration_since(Instant::now());
            if !has_children() || left.is_zero() {
                break;
            }
            wait_for_child(&children, left);
        }
        if signal == Signal::SIGKILL {
            wait_for_child(&children, Duration::from_millis(1));
        }
        signal = Signal::SIGKILL;
    }
}

fn wait_for_child(children: &SignalFd, at_most: Duration) {
    let timeout = PollTimeout::try_from(at_most).unwrap_or(PollTimeout::MAX);
    let _ = poll(&mut [PollFd::new(children.as_fd(), PollFlags::POLLIN)], timeout);
}

fn has_children() -> bool {
    let peek = WaitPidFlag::WEXITED | WaitPidFlag::WNOHANG | WaitPidFlag::WNOWAIT;
    waitid(Id::All, peek) != Err(Errno::ECHILD)
}

/// Every descendant of this process, from /proc.
fn descendants() -> Vec<Pid> {
    // The /proc of another process namespace has other numbers, which belong to other processes here.
    let this = getpid();
    if std::fs::read_link("/proc/self").ok().and_then(|link| link.to_str()?.parse().ok())
        != Some(this.as_raw())
    {
        return Vec::new();
    }
    let parents: Vec<(i32, i32)> = std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let process = entry.file_name().to_str()?.parse().ok()?;
            Some((process, parent_of(process)?))
        })
        .collect();
    let mut tree = vec![this.as_raw()];
    let mut next = 0;
    while next < tree.len() {
        let children =
            parents.iter().filter(|(_, parent)| *parent == tree[next]).map(|(process, _)| *process);
        let children: Vec<i32> = children.collect();
        tree.extend(children);
        next += 1;
    }
    tree.into_iter().skip(1).map(Pid::from_raw).collect()
}

fn parent_of(process: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name, in brackets, may contain anything; the state and the parent follow the last bracket.
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}
