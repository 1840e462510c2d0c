//! `mm-link`: a network whose link has a rate and a queue in each direction.

use std::process::ExitCode;

use clap::Parser;
use shells::arguments::{Inside, SeedOption, parsed};
use shells::element::{LinkOptions, NetworkContext};
use shells::error::Result;
use shells::link::Rate;
use shells::log::Outputs;
use shells::shell::{Shell, finish};
use shells::time::now;

/// Run a command on a link of limited rate
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
    link: LinkOptions,

    #[command(flatten)]
    seed: SeedOption,

    #[command(flatten)]
    inside: Inside,
}

fn run(arguments: &Arguments) -> Result<ExitCode> {
    let mut outputs = Outputs::default();
    let mut context = NetworkContext {
        start: now(),
        seed: arguments.seed.seed(),
        rtt: None,
        outputs: &mut outputs,
        losses: Default::default(),
    };
    let (uplink, downlink) = (Rate::parse(&arguments.uplink)?, Rate::parse(&arguments.downlink)?);
    let network = arguments.link.build(uplink, downlink, &mut context)?;
    Shell { kind: "link", label: "link".to_owned(), network, outputs }.run(&arguments.inside)
}

fn main() -> ExitCode {
    finish(run(&parsed()))
}
