//! `mm-loss`: a network that loses packets at random.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use shells::arguments::{Inside, SeedOption};
use shells::element::LossOptions;
use shells::error::Result;
use shells::log::Outputs;
use shells::shell::{Shell, finish};
use shells::units::{one_way_loss, parse_probability};

/// Run a command in a network that drops packets at random
#[derive(Parser)]
#[command(name = "mm-loss", version)]
struct Arguments {
    /// The direction in which packets are dropped
    #[arg(value_enum)]
    direction: Direction,

    /// The probability with which a packet is dropped, 0 to 1
    rate: String,

    #[command(flatten)]
    options: LossOptions,

    #[command(flatten)]
    seed: SeedOption,

    #[command(flatten)]
    inside: Inside,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Direction {
    /// From inside to outside
    Uplink,
    /// From outside to inside
    Downlink,
    /// Each of the two directions
    Both,
    /// Both, such that a packet or its answer is lost with the probability: each drops with 1-√(1-p)
    RoundTrip,
}

fn run(arguments: &Arguments) -> Result<ExitCode> {
    let rate = parse_probability(&arguments.rate)?;
    let (label, uplink, downlink) = match arguments.direction {
        Direction::Uplink => ("up", rate, 0.0),
        Direction::Downlink => ("down", 0.0, rate),
        Direction::Both => ("both", rate, rate),
        Direction::RoundTrip => ("round trip", one_way_loss(rate), one_way_loss(rate)),
    };
    Shell {
        kind: "loss",
        label: format!("loss ({label}) {}", arguments.rate),
        network: arguments.options.build(uplink, downlink, arguments.seed.seed())?,
        outputs: Outputs::default(),
    }
    .run(&arguments.inside)
}

/// `--round-trip P` is another way to write `round-trip P`.
fn words() -> impl Iterator<Item = OsString> {
    std::env::args_os()
        .enumerate()
        .map(|(index, word)| if index == 1 && word == "--round-trip" { "round-trip".into() } else { word })
}

fn main() -> ExitCode {
    finish(run(&Arguments::parse_from(words())))
}
