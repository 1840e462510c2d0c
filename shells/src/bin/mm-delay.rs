//! `mm-delay`: a network that delays packets.

use std::process::ExitCode;

use clap::Parser;
use shells::arguments::{Inside, SeedOption, parsed};
use shells::element::DelayOptions;
use shells::error::Result;
use shells::log::Outputs;
use shells::shell::{Shell, finish};
use shells::units::parse_milliseconds;

/// Run a command in a network that delays every packet
#[derive(Parser)]
#[command(name = "mm-delay", version)]
struct Arguments {
    /// One-way delay in milliseconds, fractions allowed; a round trip takes twice that
    #[arg(value_name = "DELAY_MS")]
    delay: String,

    #[command(flatten)]
    options: DelayOptions,

    #[command(flatten)]
    seed: SeedOption,

    #[command(flatten)]
    inside: Inside,
}

fn run(arguments: &Arguments) -> Result<ExitCode> {
    let delay = parse_milliseconds(&arguments.delay)?;
    Shell {
        kind: "delay",
        label: format!("delay {} ms", arguments.delay),
        network: arguments.options.build(delay, arguments.seed.seed()),
        outputs: Outputs::default(),
    }
    .run(&arguments.inside)
}

fn main() -> ExitCode {
    finish(run(&parsed()))
}
