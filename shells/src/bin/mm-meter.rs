//! `mm-meter`: a network that only measures how much passes.

use std::process::ExitCode;

use clap::Parser;
use shells::arguments::{Inside, parsed};
use shells::element::{Duplex, LinkObserver, ObservedWire};
use shells::error::Result;
use shells::log::{Meter, Outputs, Side};
use shells::shell::{Shell, finish};
use shells::time::now;

/// Run a command and write on stderr, once a second, how much it sends and receives
///
/// Without an option, it writes about both directions. Packets pass unchanged and at once.
#[derive(Parser)]
#[command(name = "mm-meter", version)]
struct Arguments {
    /// Write about packets from inside to outside
    #[arg(short = 'u', long)]
    meter_uplink: bool,

    /// Write about packets from outside to inside
    #[arg(short = 'd', long)]
    meter_downlink: bool,

    #[command(flatten)]
    inside: Inside,
}

fn run(arguments: &Arguments) -> Result<ExitCode> {
    let meter = Meter::of_rates(now());
    let both = arguments.meter_uplink == arguments.meter_downlink;
    let boxed = |side: Side| -> Box<dyn LinkObserver> { Box::new(side) };
    let uplink = (both || arguments.meter_uplink).then(|| boxed(meter.uplink()));
    let downlink = (both || arguments.meter_downlink).then(|| boxed(meter.downlink()));
    let network = Duplex {
        uplink: Box::new(ObservedWire::new(Vec::from_iter(uplink))),
        downlink: Box::new(ObservedWire::new(Vec::from_iter(downlink))),
    };
    let mut outputs = Outputs::default();
    outputs.show(meter);
    Shell { kind: "meter", label: "meter".to_owned(), network, outputs }.run(&arguments.inside)
}

fn main() -> ExitCode {
    finish(run(&parsed()))
}
