//! `mm-delay`: a network with a fixed delay in each direction.

use std::process::ExitCode;

use clap::Parser;
use shells::arguments::Inside;
use shells::element::Delay;
use shells::error::Result;
use shells::shell::{Shell, finish};
use shells::time::Nanos;
use shells::units::parse_milliseconds;

/// Run a command in a network that delays every packet
#[derive(Parser)]
#[command(name = "mm-delay", version)]
struct Arguments {
    /// One-way delay in milliseconds, fractions allowed; a round trip takes twice that
    #[arg(value_name = "DELAY_MS", value_parser = parse_milliseconds)]
    delay: Nanos,

    #[command(flatten)]
    inside: Inside,
}

fn run(arguments: &Arguments) -> Result<ExitCode> {
    let delay = || Box::new(Delay::new(arguments.delay));
    Shell {
        kind: "delay",
        uplink: delay(),
        downlink: delay(),
    }
    .run(arguments.inside.command())
}

fn main() -> ExitCode {
    finish(run(&Arguments::parse()))
}
