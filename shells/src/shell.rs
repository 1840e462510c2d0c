//! A shell: a command inside an emulated network, from start to exit status.

use std::fmt::Display;
use std::process::{Command, ExitCode};

use crate::element::Element;
use crate::error::Result;
use crate::kernel::{Ferry, Guardian, Report, block, open_passage};
use crate::time::NANOS_PER_MILLISECOND;

/// What a shell does to packets, in each direction.
pub struct Shell {
    /// Names the outer device: `delay` gives `delay-0`.
    pub kind: &'static str,
    /// From inside to outside.
    pub uplink: Box<dyn Element>,
    /// From outside to inside.
    pub downlink: Box<dyn Element>,
}

impl Shell {
    /// Run the command inside and wait for it; its exit status becomes the shell's.
    pub fn run(self, command: Command) -> Result<ExitCode> {
        let passage = open_passage(self.kind, block::DEFAULT_POOL)?;
        let inside = passage
            .inside
            .try_clone()
            .map_err(|error| crate::error::Error::new(error.to_string()))?;
        let ferry = Ferry::new(passage, self.uplink, self.downlink)?;
        let guardian = Guardian::start(&inside, command)?;
        let report = ferry.run(&guardian)?;
        tell_lateness(&report);
        Ok(ExitCode::from(report.status as u8))
    }
}

fn tell_lateness(report: &Report) {
    if report.late_wakeups > 0 {
        complain(&format!(
            "woke up more than 1 ms late {} times, {:.1} ms at worst: the machine was too busy for exact times",
            report.late_wakeups,
            report.worst_lateness as f64 / NANOS_PER_MILLISECOND as f64
        ));
    }
}

/// Turn the outcome of a shell's `main` into an exit status, telling an error in one line.
pub fn finish(outcome: Result<ExitCode>) -> ExitCode {
    outcome.unwrap_or_else(|error| {
        complain(&error);
        ExitCode::FAILURE
    })
}

/// Tell the user something in one line on stderr, with the program's name in front.
pub fn complain(message: &dyn Display) {
    let program = std::env::args_os().next().unwrap_or_default();
    let name = std::path::Path::new(&program)
        .file_name()
        .unwrap_or_default()
        .to_string_lossy();
    eprintln!("{name}: {message}");
}
