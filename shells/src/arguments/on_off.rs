//! The arguments of mm-onoff and mm-intermittent, which differ only in their schedule.

use clap::{Args, ValueEnum};

use super::{Inside, SeedArgument};
use crate::element::{Duplex, Element, OnOff, Schedule};
use crate::error::{Error, Result};
use crate::log::Outputs;
use crate::random::Random;
use crate::shell::Shell;
use crate::time::now;
use crate::units::parse_seconds;

/// A direction, as Mahimahi names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Direction {
    Uplink,
    Downlink,
}

/// When a link is on and off.
#[derive(Args, Debug)]
pub struct OnOffArguments {
    /// The direction whose link is on and off
    #[arg(value_enum)]
    direction: Direction,

    /// How long the link is on, in seconds, fractions allowed
    #[arg(value_name = "ON_SECONDS")]
    on: String,

    /// How long the link is off and loses every packet, in seconds
    #[arg(value_name = "OFF_SECONDS")]
    off: String,

    #[command(flatten)]
    pub seed: SeedArgument,

    #[command(flatten)]
    pub inside: Inside,
}

impl OnOffArguments {
    /// The shell for them.
    pub fn shell(&self, kind: &'static str, schedule: impl Fn(Random) -> Schedule) -> Result<Shell> {
        let (on, off) = (parse_seconds(&self.on)?, parse_seconds(&self.off)?);
        if on + off == 0 {
            return Err(Error::new("a link cannot be on for 0 s and off for 0 s; give at least one of them"));
        }
        let start = now();
        let random = self.seed.seed().generator(kind);
        let switching: Box<dyn Element> = Box::new(OnOff::new(on, off, schedule(random), start));
        let always_on: Box<dyn Element> = Box::new(OnOff::new(1, 0, Schedule::Periodic, start));
        let (arrow, network) = match self.direction {
            Direction::Uplink => ("up", Duplex { uplink: switching, downlink: always_on }),
            Direction::Downlink => ("down", Duplex { uplink: always_on, downlink: switching }),
        };
        let label = format!("{kind} ({arrow}) on={}s off={}s", self.on, self.off);
        Ok(Shell { kind, label, network, outputs: Outputs::default() })
    }
}
