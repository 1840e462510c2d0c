//! `mm-net`: delay, link and loss in one hop.

use std::process::ExitCode;

use clap::Parser;
use shells::arguments::{
    DelayArguments, Inside, LinkArguments, LinkParts, LossArguments, LossParts, SeedArgument,
};
use shells::element::Duplex;
use shells::error::{Error, Result};
use shells::link::Rate;
use shells::log::Outputs;
use shells::profile::Profile;
use shells::queue::spec::QueueSpec;
use shells::shell::{Shell, finish};
use shells::time::{NANOS_PER_MILLISECOND, Nanos, now};
use shells::units::{one_way_loss, parse_milliseconds, parse_probability};

/// Run a command in an emulated network: delay, link and loss in one hop
///
/// Does to packets what mm-delay, mm-link and mm-loss nested in this order do, in one process.
#[derive(Parser)]
#[command(name = "mm-net", version)]
struct Arguments {
    /// Start from a known network: dsl, lte, da2gc or mss; other options change parts of it
    #[arg(long, value_name = "NAME")]
    profile: Option<String>,

    /// One-way delay in milliseconds, in both directions
    #[arg(long, value_name = "MS", value_parser = parse_milliseconds, help_heading = "Delay")]
    delay: Option<Nanos>,

    #[command(flatten)]
    delays: DelayArguments,

    /// Rate from inside to outside: a constant such as 2.8M or 468k, or a trace file
    #[arg(long, value_name = "RATE", help_heading = "Link")]
    up: Option<String>,

    /// Rate from outside to inside
    #[arg(long, value_name = "RATE", help_heading = "Link")]
    down: Option<String>,

    #[command(flatten)]
    link: LinkArguments,

    /// Probability with which a packet is dropped, in each direction
    #[arg(long, value_name = "P", value_parser = parse_probability, help_heading = "Loss")]
    loss: Option<f64>,

    /// Probability of loss from inside to outside
    #[arg(long, value_name = "P", value_parser = parse_probability, help_heading = "Loss")]
    loss_up: Option<f64>,

    /// Probability of loss from outside to inside
    #[arg(long, value_name = "P", value_parser = parse_probability, help_heading = "Loss")]
    loss_down: Option<f64>,

    /// Probability that a packet or its answer is lost; each direction drops with 1-√(1-P)
    #[arg(long, value_name = "P", value_parser = parse_probability, conflicts_with = "loss", help_heading = "Loss")]
    round_trip_loss: Option<f64>,

    #[command(flatten)]
    losses: LossArguments,

    #[command(flatten)]
    seed: SeedArgument,

    #[command(flatten)]
    inside: Inside,
}

/// What was asked for, with nothing left open.
struct Network {
    delay: Nanos,
    link: Option<(Rate, Rate)>,
    queue: QueueSpec,
    loss_up: f64,
    loss_down: f64,
}

impl Network {
    fn from(arguments: &Arguments) -> Result<Self> {
        let profile = arguments.profile.as_deref().map(Profile::named).transpose()?;
        let delay = arguments.delay.or_else(|| profile.map(|it| one_way_delay(&it))).unwrap_or(0);
        let loss = arguments
            .loss
            .or(arguments.round_trip_loss.or(profile.map(|it| it.loss)).map(one_way_loss))
            .unwrap_or(0.0);
        let rate = |given: &Option<String>, mbps: Option<f64>| match (given, mbps) {
            (Some(text), _) => Rate::parse(text).map(Some),
            (None, Some(mbps)) => Ok(Some(Rate::Constant { bps: (mbps * 1e6).round() as u64 })),
            (None, None) => Ok(None),
        };
        let up = rate(&arguments.up, profile.map(|it| it.up_mbps))?;
        let down = rate(&arguments.down, profile.map(|it| it.down_mbps))?;
        let link = match (up, down) {
            (Some(up), Some(down)) => Some((up, down)),
            (None, None) => None,
            _ => return Err(Error::new("a link needs both rates; give --up and --down")),
        };
        if link.is_none() && arguments.link.is_given() {
            return Err(Error::new("the options of a link need its rates; give --up and --down"));
        }
        let queue = match profile {
            Some(it) => QueueSpec::drop_tail(&format!("{}ms", it.queue_ms))?,
            None => QueueSpec::default(),
        };
        Ok(Self {
            delay,
            link,
            queue,
            loss_up: arguments.loss_up.unwrap_or(loss),
            loss_down: arguments.loss_down.unwrap_or(loss),
        })
    }

    /// Everything in the order in which shells would be nested.
    fn build(self, arguments: &Arguments, outputs: &mut Outputs) -> Result<Duplex> {
        let seed = arguments.seed.seed();
        let mut stack = vec![arguments.delays.build(self.delay, seed)];
        if let Some((uplink, downlink)) = self.link {
            let rtt = Some(arguments.delays.rtt(self.delay));
            let parts = LinkParts { uplink, downlink, queue: self.queue, rtt, start: now(), seed, outputs };
            stack.push(arguments.link.build(parts)?);
        }
        if self.loss_up > 0.0 || self.loss_down > 0.0 {
            let parts = LossParts { uplink: self.loss_up, downlink: self.loss_down, seed };
            stack.push(arguments.losses.build(parts)?);
        }
        Ok(Duplex::stack(stack))
    }
}

fn one_way_delay(profile: &Profile) -> Nanos {
    (profile.min_rtt_ms / 2.0 * NANOS_PER_MILLISECOND as f64).round() as Nanos
}

fn run(arguments: &Arguments) -> Result<ExitCode> {
    let mut outputs = Outputs::default();
    let network = Network::from(arguments)?.build(arguments, &mut outputs)?;
    let label = arguments.profile.as_ref().map_or_else(|| "net".to_owned(), |name| format!("net {name}"));
    Shell { kind: "net", label, network, outputs }.run(&arguments.inside)
}

fn main() -> ExitCode {
    finish(run(&Arguments::parse()))
}
