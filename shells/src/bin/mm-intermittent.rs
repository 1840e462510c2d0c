//! `mm-intermittent`: a network that is on and off in turn.

use std::process::ExitCode;

use clap::Parser;
use shells::arguments::{Inside, SeedOption, parsed};
use shells::element::{OnOffOptions, Schedule};
use shells::error::Result;
use shells::log::Outputs;
use shells::shell::{Shell, finish};
use shells::time::now;

const KIND: &str = "intermittent";

/// Run a command on a link that is on and off in turn
///
/// The link begins on.
#[derive(Parser)]
#[command(name = "mm-intermittent", version)]
struct Arguments {
    #[command(flatten)]
    on_off: OnOffOptions,

    #[command(flatten)]
    seed: SeedOption,

    #[command(flatten)]
    inside: Inside,
}

fn run(arguments: &Arguments) -> Result<ExitCode> {
    let network = arguments.on_off.build(Schedule::Periodic, now())?;
    let label = format!("{KIND} {}", arguments.on_off.describe());
    Shell { kind: KIND, label, network, outputs: Outputs::default() }.run(&arguments.inside)
}

fn main() -> ExitCode {
    finish(run(&parsed()))
}
