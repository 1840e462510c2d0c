//! `mm-loss`: a network that loses packets, at random or chosen ones.

use std::ffi::OsString;
use std::iter;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, ValueEnum};
use shells::arguments::{Inside, SeedOption, print_man_page_if_asked};
use shells::element::{ChosenLossOptions, Duplex, LossOptions};
use shells::error::Result;
use shells::log::Outputs;
use shells::shell::{Shell, finish};
use shells::time::now;
use shells::units::{one_way_loss, parse_probability};

/// Run a command in a network that drops packets, at random or chosen ones
#[derive(Parser)]
#[command(name = "mm-loss", version)]
struct Arguments {
    /// The direction in which packets are dropped
    #[arg(value_enum)]
    direction: Direction,

    /// The probability with which a packet is dropped, 0 to 1. It may be left out if --packets or --at is given
    rate: String,

    #[command(flatten)]
    options: LossOptions,

    #[command(flatten)]
    chosen: ChosenLossOptions,

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
    /// Both; a packet or its answer is lost with probability p, so each direction drops with 1-√(1-p)
    RoundTrip,
}

fn run(arguments: &Arguments) -> Result<ExitCode> {
    let rate = parse_probability(&arguments.rate)?;
    let (label, uplink, downlink) = match arguments.direction {
        Direction::Uplink => ("up", rate, 0.0),
        Direction::Downlink => ("down", 0.0, rate),
        Direction::Both => ("both", rate, rate),
        Direction::RoundTrip => ("round-trip", one_way_loss(rate), one_way_loss(rate)),
    };
    let has_loss =
        |direction| [direction, Direction::Both, Direction::RoundTrip].contains(&arguments.direction);
    let (has_uplink, has_downlink) = (has_loss(Direction::Uplink), has_loss(Direction::Downlink));
    let at_random = arguments.options.build(uplink, downlink, arguments.seed.seed(), &Default::default())?;
    let chosen = arguments.chosen.build(has_uplink, has_downlink, now());
    Shell {
        kind: "loss",
        label: format!("loss {label}={}", arguments.rate),
        network: Duplex::stack(iter::once(at_random).chain(chosen).collect()),
        outputs: Outputs::default(),
    }
    .run(&arguments.inside)
}

/// The command line in the form that clap parses. `--round-trip P` becomes `round-trip P`; a missing rate becomes 0 if
/// packets are chosen.
fn words() -> Vec<OsString> {
    let mut words: Vec<_> = std::env::args_os().collect();
    if words.get(1).is_some_and(|word| word == "--round-trip") {
        words[1] = "round-trip".into();
    }
    let choice = words.get(2).map(|word| word.to_string_lossy()).unwrap_or_default();
    if choice.split('=').next().is_some_and(|option| ["--packets", "--at"].contains(&option)) {
        words.insert(2, "0".into());
    }
    words
}

fn main() -> ExitCode {
    print_man_page_if_asked(Arguments::command);
    finish(run(&Arguments::parse_from(words())))
}
