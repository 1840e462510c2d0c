//! `mm-link`: a network whose link has a rate and a queue in each direction.

use std::process::ExitCode;

use clap::Parser;
use shells::arguments::{Inside, LinkArguments, LinkParts, SeedArgument};
use shells::error::Result;
use shells::link::Rate;
use shells::log::Outputs;
use shells::queue::spec::QueueSpec;
use shells::shell::{Shell, finish};
use shells::time::now;

/// Run a command behind a link of limited rate
///
/// A rate is a constant such as 2.8M (bit/s; k, M and G are decimal; a packet of n bytes takes 8n / rate), or
/// a Mahimahi trace: a file with one time in milliseconds per line, each letting 1504 bytes through.
#[derive(Parser)]
#[command(name = "mm-link", version)]
struct Arguments {
    /// Rate from inside to outside: a constant such as 2.8M or 468k, or a trace file
    uplink: String,

    /// Rate from outside to inside
    downlink: String,

    #[command(flatten)]
    link: LinkArguments,

    #[command(flatten)]
    seed: SeedArgument,

    #[command(flatten)]
    inside: Inside,
}

fn run(arguments: &Arguments) -> Result<ExitCode> {
    let mut outputs = Outputs::default();
    let network = arguments.link.build(LinkParts {
        uplink: Rate::parse(&arguments.uplink)?,
        downlink: Rate::parse(&arguments.downlink)?,
        queue: QueueSpec::default(),
        rtt: None,
        start: now(),
        seed: arguments.seed.seed(),
        outputs: &mut outputs,
    })?;
    Shell { kind: "link", label: "link".to_owned(), network, outputs }.run(&arguments.inside)
}

fn main() -> ExitCode {
    finish(run(&Arguments::parse()))
}
