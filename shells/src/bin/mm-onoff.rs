//! `mm-onoff`: a network that is on and off for random times.

use std::process::ExitCode;

use clap::Parser;
use shells::arguments::OnOffArguments;
use shells::element::Schedule;
use shells::error::Result;
use shells::shell::finish;

/// Run a command behind a link that is on and off for random times
///
/// The times are exponentially distributed with the given means. The link begins on.
#[derive(Parser)]
#[command(name = "mm-onoff", version)]
struct Arguments {
    #[command(flatten)]
    on_off: OnOffArguments,
}

fn run(arguments: &OnOffArguments) -> Result<ExitCode> {
    arguments.shell("onoff", Schedule::Random)?.run(&arguments.inside)
}

fn main() -> ExitCode {
    finish(run(&Arguments::parse().on_off))
}
