//! `mm-link`: a network whose link has a rate and a queue in each direction.

use std::process::ExitCode;

use clap::Parser;
use shells::arguments::Inside;
use shells::error::Result;
use shells::link::{LinkSpec, QueueKind};
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

    /// What happens when packets wait for the uplink
    #[arg(long, value_enum, default_value_t)]
    uplink_queue: QueueKind,

    /// Limits of the uplink's queue: packets=N and/or bytes=N, separated by commas
    #[arg(long, value_name = "NAME=NUMBER,…", default_value = "")]
    uplink_queue_args: String,

    /// What happens when packets wait for the downlink
    #[arg(long, value_enum, default_value_t)]
    downlink_queue: QueueKind,

    /// Limits of the downlink's queue
    #[arg(long, value_name = "NAME=NUMBER,…", default_value = "")]
    downlink_queue_args: String,

    #[command(flatten)]
    inside: Inside,
}

fn run(arguments: &Arguments) -> Result<ExitCode> {
    let start = now();
    let uplink = LinkSpec::parse(
        &arguments.uplink,
        arguments.uplink_queue,
        &arguments.uplink_queue_args,
    )?;
    let downlink = LinkSpec::parse(
        &arguments.downlink,
        arguments.downlink_queue,
        &arguments.downlink_queue_args,
    )?;
    Shell {
        kind: "link",
        uplink: uplink.element(start),
        downlink: downlink.element(start),
    }
    .run(arguments.inside.command())
}

fn main() -> ExitCode {
    finish(run(&Arguments::parse()))
}
