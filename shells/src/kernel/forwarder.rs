//! The event loop: it passes packets from each of two TUN devices to the other, through one element per direction.

use std::os::fd::AsFd;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::SignalFd;
use nix::sys::time::TimeSpec;

use super::alarm::Alarm;
use super::forwarding_path::ForwardingPath;
use super::signals;
use super::supervisor::{FORWARDED, Supervisor};
use super::timekeeping::{self, Timekeeping};
use super::tun::LARGEST_READ;
use super::tun_pair::TunPair;
use crate::element::Duplex;
use crate::error::{Attempt, Result};
use crate::log::Outputs;
use crate::time::{NANOS_PER_MILLISECOND, NANOS_PER_SECOND, Nanos, now};

/// Packets that leave more than this after they were due are counted: the emulated network delayed them by more than
/// its options say.
const LATE: Nanos = NANOS_PER_MILLISECOND;

/// A command that still runs this long after SIGTERM or SIGHUP is killed.
const GRACE: Nanos = 5 * NANOS_PER_SECOND;

/// The outcome of the emulation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Report {
    /// The command's exit status; 128 + n if signal n ended it, and 0 if the network ended, as in Mahimahi.
    pub status: i32,
    /// How often a packet left more than 1 ms after it was due; packets that leave together count once.
    pub late_wakeups: u64,
    pub worst_lateness: Nanos,
    /// Packets that the emulator itself lost: it did not read them fast enough, or the kernel refused them.
    pub emulator_losses: u64,
    pub timekeeping: Timekeeping,
}

/// Whether each descriptor can be read.
struct Ready {
    inner: bool,
    outer: bool,
    signals: bool,
}

/// Carries packets between the two devices until the command ends.
pub struct Forwarder {
    pair: TunPair,
    uplink: ForwardingPath,
    downlink: ForwardingPath,
    outputs: Outputs,
    signals: SignalFd,
    /// When the network itself ends, and the command with it.
    network_end: Option<Nanos>,
    has_network_ended: bool,
    kill_at: Option<Nanos>,
    alarm: Alarm,
    report: Report,
}

impl Forwarder {
    /// Block the signals that end or interrupt a shell, and receive them as events.
    ///
    /// Call this before the command starts, so that no signal is missed.
    pub fn new(pair: TunPair, network: Duplex, outputs: Outputs) -> Result<Self> {
        let mut watched = vec![Signal::SIGCHLD];
        watched.extend(signals::not_ignored(&FORWARDED));
        Ok(Self {
            signals: signals::watch(&watched)?,
            network_end: earliest([network.uplink.end(), network.downlink.end()]),
            has_network_ended: false,
            kill_at: None,
            alarm: Alarm::default(),
            report: Report::default(),
            uplink: ForwardingPath::new(network.uplink, &pair.inner),
            downlink: ForwardingPath::new(network.downlink, &pair.outer),
            pair,
            outputs,
        })
    }

    /// Carry packets until the command ends.
    pub fn run(mut self, supervisor: &Supervisor) -> Result<Report> {
        timekeeping::wake_up_on_time()?;
        let mut buffer = vec![0; LARGEST_READ];
        loop {
            self.outputs.flush()?;
            let ready = self.wait()?;
            let Self { pair, uplink, downlink, .. } = &mut self;
            if ready.inner {
                uplink.read_from(&pair.inner, &mut buffer)?;
            }
            if ready.outer {
                downlink.read_from(&pair.outer, &mut buffer)?;
            }
            let late_up = uplink.write_to(&pair.outer);
            let late_down = downlink.write_to(&pair.inner);
            self.note_lateness(late_up.max(late_down));
            if ready.signals {
                if let Some(status) = self.handle_signals(supervisor) {
                    self.outputs.flush()?;
                    self.report.status = if self.has_network_ended { 0 } else { status };
                    let refused = self.uplink.refused() + self.downlink.refused();
                    self.report.emulator_losses = self.pair.overflowed()? + refused;
                    self.report.timekeeping = Timekeeping {
                        real_time_priority: timekeeping::has_real_time_priority(),
                        kernel_stamps: self.uplink.has_stamps() && self.downlink.has_stamps(),
                    };
                    return Ok(self.report);
                }
            }
            self.handle_time(supervisor);
            self.outputs.show_due(now());
        }
    }

    /// Sleep until a packet or a signal arrives, or a packet is due. Returns which descriptors can be read.
    fn wait(&mut self) -> Result<Ready> {
        let time = now();
        let packet_due = earliest([self.uplink.next_due(), self.downlink.next_due()]);
        let packet_wake = packet_due.map(|due| self.alarm.wake_at(time, due));
        let wake = earliest([packet_wake, self.network_end, self.kill_at, self.outputs.next_due()]);
        let timeout = wake.map(|wake| {
            let span = wake.saturating_sub(time);
            TimeSpec::new((span / NANOS_PER_SECOND) as i64, (span % NANOS_PER_SECOND) as i64)
        });
        let can_wait = [self.uplink.can_wait(time, wake), self.downlink.can_wait(time, wake)];
        let [watch_inner, watch_outer] =
            can_wait.map(|it| if it { PollFlags::empty() } else { PollFlags::POLLIN });
        let mut events = [
            PollFd::new(self.pair.inner.as_fd(), watch_inner),
            PollFd::new(self.pair.outer.as_fd(), watch_outer),
            PollFd::new(self.signals.as_fd(), PollFlags::POLLIN),
        ];
        match ppoll(&mut events, timeout, None::<SigSet>) {
            Ok(0) => {
                if !can_wait[0] {
                    self.uplink.nothing_waits();
                }
                if !can_wait[1] {
                    self.downlink.nothing_waits();
                }
                if packet_wake.is_some_and(|packet_wake| packet_wake > time && wake == Some(packet_wake)) {
                    self.alarm.learn(now());
                }
            }
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error).attempt(|| "wait for packets"),
        }
        let [inner, outer, signals] = events.map(|event| event.any().unwrap_or(true));
        Ok(Ready { inner: inner || can_wait[0], outer: outer || can_wait[1], signals })
    }

    fn note_lateness(&mut self, lateness: Nanos) {
        if lateness > LATE {
            self.report.late_wakeups += 1;
            self.report.worst_lateness = self.report.worst_lateness.max(lateness);
        }
    }

    /// Act on signals. Returns the exit status once the command has ended.
    fn handle_signals(&mut self, supervisor: &Supervisor) -> Option<i32> {
        while let Some(received) = signals::next(&self.signals) {
            match received.signal {
                Signal::SIGCHLD => {
                    if let Some(status) = supervisor.ended() {
                        return Some(status);
                    }
                }
                Signal::SIGTERM | Signal::SIGHUP => self.end_command(supervisor, received.signal),
                // Ctrl-C and Ctrl-\ at the terminal reach the command directly.
                signal if received.from_process => supervisor.forward(signal),
                _ => {}
            }
        }
        None
    }

    /// Act on deadlines that have passed.
    fn handle_time(&mut self, supervisor: &Supervisor) {
        if self.network_end.take_if(|at| *at <= now()).is_some() {
            self.has_network_ended = true;
            self.end_command(supervisor, Signal::SIGHUP);
        }
        if self.kill_at.take_if(|at| *at <= now()).is_some() {
            supervisor.forward(Signal::SIGKILL);
        }
    }

    /// Send the command a `signal` that asks it to end; kill it if it still runs after `GRACE`.
    fn end_command(&mut self, supervisor: &Supervisor, signal: Signal) {
        supervisor.forward(signal);
        self.kill_at.get_or_insert(now() + GRACE);
    }
}

fn earliest<const N: usize>(instants: [Option<Nanos>; N]) -> Option<Nanos> {
    instants.into_iter().flatten().min()
}
