//! A shell: a command inside an emulated network, from start to exit status.

use std::env;
use std::process::{Command, ExitCode};

use crate::arguments::Inside;
use crate::element::Duplex;
use crate::error::{Error, Result, complain};
use crate::kernel::address_block::Family;
use crate::kernel::{Forwarder, Report, Supervisor, TunPair, open_tun_pair};
use crate::log::Outputs;
use crate::time::NANOS_PER_MILLISECOND;

/// If this variable is set, Mahimahi's shells pass packets on unchanged until they receive SIGUSR1.
const PASSTHROUGH: &str = "MAHIMAHI_PASSTHROUGH_UNTIL_SIGNAL";

/// An emulated network to run a command in.
pub struct Shell {
    /// The name of the outer device: `delay` gives `delay-0`.
    pub kind: &'static str,
    /// The beginning of the prompt in the shell, such as `delay 20 ms`.
    pub label: String,
    /// The elements that packets pass.
    pub network: Duplex,
    /// The logs that the network writes.
    pub outputs: Outputs,
}

impl Shell {
    /// Run the command inside and wait for it; its exit status becomes the shell's.
    pub fn run(self, inside: &Inside) -> Result<ExitCode> {
        self.run_to_report(inside).map(exit_code)
    }

    /// Run the command inside and wait for it; returns the outcome of the emulation.
    pub fn run_to_report(mut self, inside: &Inside) -> Result<Report> {
        if env::var_os(PASSTHROUGH).is_some() {
            return Err(Error::new(format!(
                "{PASSTHROUGH} is set, but the network here begins at once; unset it"
            )));
        }
        self.outputs.flush()?;
        let pair = open_tun_pair(self.kind, inside.addresses)?;
        let mut command = inside.command();
        set_environment(&mut command, &self.label, &pair);
        let namespace = pair.inside()?;
        let forwarder = Forwarder::new(pair, self.network, self.outputs)?;
        let supervisor = Supervisor::start(&namespace, command)?;
        drop(namespace);
        let report = forwarder.run(&supervisor)?;
        warn_of_lateness(&report);
        warn_of_losses(&report);
        Ok(report)
    }
}

/// The exit status of the shell that made this report: that of its command.
#[must_use]
pub fn exit_code(report: Report) -> ExitCode {
    ExitCode::from(report.status as u8)
}

/// Set Mahimahi's variables, which show the command in which network it runs.
fn set_environment(command: &mut Command, label: &str, pair: &TunPair) {
    // The address by which all shells inside reach the outside of the outermost one.
    if pair.is_outermost || env::var_os("MAHIMAHI_BASE").is_none() {
        command.env("MAHIMAHI_BASE", pair.block.outer_end(Family::V4).to_string());
    }
    let mut prefix = env::var_os("MAHIMAHI_SHELL_PREFIX").unwrap_or_default();
    prefix.push(format!("[{label}] "));
    command.env("MAHIMAHI_SHELL_PREFIX", prefix);
    // Bash runs this before its first prompt, after its start-up files have set theirs.
    command.env("PROMPT_COMMAND", r#"PS1="$MAHIMAHI_SHELL_PREFIX$PS1" PROMPT_COMMAND="#);
}

fn warn_of_lateness(report: &Report) {
    if report.late_wakeups > 0 {
        complain(&format!(
            "woke up more than 1 ms late {}, {:.1} ms at worst: the machine was too busy for exact times",
            counted(report.late_wakeups, "time"),
            report.worst_lateness as f64 / NANOS_PER_MILLISECOND as f64
        ));
    }
}

fn warn_of_losses(report: &Report) {
    if report.emulator_losses > 0 {
        complain(&format!(
            "lost {} by itself: more came than this machine can carry at once",
            counted(report.emulator_losses, "packet")
        ));
    }
}

fn counted(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

/// Turn the outcome of a shell's `main` into an exit status; an error is one line on stderr.
pub fn finish(outcome: Result<ExitCode>) -> ExitCode {
    outcome.unwrap_or_else(|error| {
        complain(&error);
        ExitCode::FAILURE
    })
}
