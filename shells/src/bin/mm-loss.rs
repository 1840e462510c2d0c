//! `mm-loss`: a network that loses packets at random.

use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use shells::arguments::{Inside, SeedArgument};
use shells::element::{Duplex, Element, Loss};
use shells::error::Result;
use shells::log::Outputs;
use shells::shell::{Shell, finish};
use shells::units::parse_probability;

/// Run a command in a network that drops packets at random in one direction
#[derive(Parser)]
#[command(name = "mm-loss", version)]
struct Arguments {
    /// The direction in which packets are dropped
    #[arg(value_enum)]
    direction: Direction,

    /// The probability with which each packet is dropped, 0 to 1
    #[arg(value_parser = parse_probability)]
    rate: f64,

    #[command(flatten)]
    seed: SeedArgument,

    #[command(flatten)]
    inside: Inside,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Direction {
    Uplink,
    Downlink,
}

fn run(arguments: &Arguments) -> Result<ExitCode> {
    let loss = |direction, name| -> Box<dyn Element> {
        let rate = if arguments.direction == direction {
            arguments.rate
        } else {
            0.0
        };
        Box::new(Loss::new(rate, arguments.seed.seed().generator(name)))
    };
    let direction = if arguments.direction == Direction::Uplink {
        "up"
    } else {
        "down"
    };
    Shell {
        kind: "loss",
        label: format!("loss ({direction}) {}", arguments.rate),
        network: Duplex {
            uplink: loss(Direction::Uplink, "loss uplink"),
            downlink: loss(Direction::Downlink, "loss downlink"),
        },
        outputs: Outputs::default(),
    }
    .run(&arguments.inside)
}

fn main() -> ExitCode {
    finish(run(&Arguments::parse()))
}
