//! `mm-intermittent`: a network that is on and off in turn.

use std::process::ExitCode;

use clap::Parser;
use shells::arguments::OnOffArguments;
use shells::element::Schedule;
use shells::error::Result;
use shells::shell::finish;

/// Run a command behind a link that is on and off in turn
///
/// The link begins on.
#[derive(Parser)]
#[command(name = "mm-intermittent", version)]
struct Arguments {
    #[command(flatten)]
    on_off: OnOffArguments,
}

fn run(arguments: &OnOffArguments) -> Result<ExitCode> {
    arguments.shell("intermittent", |_| Schedule::Periodic)?.run(&arguments.inside)
}

fn main() -> ExitCode {
    finish(run(&Arguments::parse().on_off))
}
