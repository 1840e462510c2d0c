//! The options of a link: queues, logs, how often a trace is played.

use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use super::{Duplex, Impairment, LinkObserver, LossObserver, LossObservers, NetworkContext};
use crate::error::{Error, Result, program_name};
use crate::link::{LinkSpec, Rate};
use crate::log::{Capture, LinkDescription, MahimahiLog, Meter, Outputs, PacketLog};
use crate::queue::{self, KINDS, LIMIT_PARAMETERS, Parameter, QueueKind, QueueSpec};
use crate::time::Nanos;
use crate::trace::Rounds;

/// The options of `mm-link`: queues, logs, and how often a trace is played.
#[derive(Args, Debug)]
#[command(next_help_heading = "Link")]
pub struct LinkOptions {
    /// Queue in which packets wait for the uplink [default: infinite]
    #[arg(long, value_name = "QUEUE", value_parser = queue_kind_parser())]
    uplink_queue: Option<&'static QueueKind>,

    /// Arguments of the uplink's queue, separated by commas
    #[arg(
        long,
        value_name = "NAME=NUMBER,…",
        default_value = "",
        hide_default_value = true,
        help = queue_arguments_help()
    )]
    uplink_queue_args: String,

    /// Queue in which packets wait for the downlink [default: infinite]
    #[arg(long, value_name = "QUEUE", value_parser = queue_kind_parser())]
    downlink_queue: Option<&'static QueueKind>,

    /// Arguments of the downlink's queue
    #[arg(long, value_name = "NAME=NUMBER,…", default_value = "", hide_default_value = true)]
    downlink_queue_args: String,

    /// A drop-tail queue of this size in both directions: 200ms (at the link's rate), 70000 (bytes), 30p
    /// (packets) or 1.5bdp
    #[arg(long, value_name = "SIZE", conflicts_with_all = ["uplink_queue", "downlink_queue"])]
    queue: Option<String>,

    /// Log the events at the uplink to this file, in Mahimahi's format
    #[arg(short = 'u', long, value_name = "FILE")]
    uplink_log: Option<PathBuf>,

    /// Log the events at the downlink to this file
    #[arg(short = 'd', long, value_name = "FILE")]
    downlink_log: Option<PathBuf>,

    /// Write to this file, as CSV, a row for every packet that left a link, was dropped there or was lost
    #[arg(long, value_name = "FILE")]
    packet_log: Option<PathBuf>,

    /// Write to this file the same packets as a capture (pcapng), which Wireshark reads
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,

    /// Write on stderr, once a second, the rate of each direction, the longest wait in its queue, its drops and losses
    #[arg(long, visible_alias = "meter-all")]
    meter: bool,

    /// Write the same for the uplink alone
    #[arg(long, visible_alias = "meter-uplink-delay")]
    meter_uplink: bool,

    /// Write the same for the downlink alone
    #[arg(long, visible_alias = "meter-downlink-delay")]
    meter_downlink: bool,

    /// End with the first trace that ends, instead of repeating it
    #[arg(long)]
    once: bool,
}

impl LinkOptions {
    /// Build both directions.
    pub fn build(&self, uplink: Rate, downlink: Rate, context: &mut NetworkContext<'_>) -> Result<Duplex> {
        let NetworkContext { start, seed, rtt, .. } = *context;
        let outputs = &mut *context.outputs;
        let rounds = if self.once { Rounds::Once } else { Rounds::Forever };
        let link = |rate, direction: &Direction<'_>| -> Result<LinkSpec> {
            Ok(LinkSpec { rate, queue: self.queue(direction)?, rounds, rtt })
        };
        let (up, down) = (self.uplink(), self.downlink());
        let (uplink, downlink) = (link(uplink, &up)?, link(downlink, &down)?);

        let mut up_observers = mahimahi_log(&up, &uplink, start, outputs)?;
        let mut down_observers = mahimahi_log(&down, &downlink, start, outputs)?;
        let [up_losses, down_losses] = &mut context.losses;
        if let Some(path) = &self.packet_log {
            let output = outputs.create(path)?;
            PacketLog::begin(&output);
            observe(PacketLog::new(output.clone(), "up", start), &mut up_observers, up_losses);
            observe(PacketLog::new(output, "down", start), &mut down_observers, down_losses);
        }
        if let Some(path) = &self.pcap {
            let [up, down] = Capture::begin(&outputs.create(path)?, &program_name());
            observe(up, &mut up_observers, up_losses);
            observe(down, &mut down_observers, down_losses);
        }
        if self.has_meter() {
            let meter = Meter::new(start);
            if self.meter || self.meter_uplink {
                observe(meter.uplink(), &mut up_observers, up_losses);
            }
            if self.meter || self.meter_downlink {
                observe(meter.downlink(), &mut down_observers, down_losses);
            }
            outputs.show(meter);
        }
        Ok(Duplex {
            uplink: uplink.build(start, seed.generator("link uplink"), up_observers)?,
            downlink: downlink.build(start, seed.generator("link downlink"), down_observers)?,
        })
    }

    /// Whether the command line has any of these options.
    fn is_given(&self) -> bool {
        let queues = self.queue.is_some() || self.uplink().has_queue() || self.downlink().has_queue();
        let logs = [&self.uplink_log, &self.downlink_log, &self.packet_log, &self.pcap];
        queues || logs.into_iter().any(Option::is_some) || self.has_meter() || self.once
    }

    fn has_meter(&self) -> bool {
        self.meter || self.meter_uplink || self.meter_downlink
    }

    fn uplink(&self) -> Direction<'_> {
        Direction {
            name: "Uplink",
            queue: self.uplink_queue,
            arguments: &self.uplink_queue_args,
            log: self.uplink_log.as_deref(),
        }
    }

    fn downlink(&self) -> Direction<'_> {
        Direction {
            name: "Downlink",
            queue: self.downlink_queue,
            arguments: &self.downlink_queue_args,
            log: self.downlink_log.as_deref(),
        }
    }

    fn queue(&self, direction: &Direction<'_>) -> Result<QueueSpec> {
        match (direction.queue, &self.queue) {
            (Some(kind), _) => QueueSpec::parse(kind, direction.arguments),
            (None, _) if direction.has_queue() => Err(Error::new(format!(
                "the queue arguments '{}' need a queue; choose one with --{}-queue",
                direction.arguments,
                direction.name.to_lowercase()
            ))),
            (None, Some(size)) => QueueSpec::drop_tail(size),
            (None, None) => Ok(QueueSpec::default()),
        }
    }
}

/// The options of one direction.
struct Direction<'a> {
    /// The direction's name in Mahimahi's logs.
    name: &'static str,
    queue: Option<&'static QueueKind>,
    arguments: &'a str,
    log: Option<&'a Path>,
}

impl Direction<'_> {
    fn has_queue(&self) -> bool {
        self.queue.is_some() || !self.arguments.is_empty()
    }
}

/// Let `observer` see the events at the link of a direction, and losses outside it.
fn observe<O: LinkObserver + LossObserver + Clone + 'static>(
    observer: O,
    at_link: &mut Vec<Box<dyn LinkObserver>>,
    losses: &mut LossObservers,
) {
    losses.add(observer.clone());
    at_link.push(Box::new(observer));
}

/// The log of a direction, if the command line asks for one.
fn mahimahi_log(
    direction: &Direction<'_>,
    link: &LinkSpec,
    start: Nanos,
    outputs: &mut Outputs,
) -> Result<Vec<Box<dyn LinkObserver>>> {
    let Some(path) = direction.log else { return Ok(Vec::new()) };
    let (rate, queue) = (link.rate.to_string(), link.queue.to_string());
    let description = LinkDescription { direction: direction.name, rate: &rate, queue: &queue, start };
    Ok(vec![Box::new(MahimahiLog::new(outputs.create(path)?, &description))])
}

/// Parses the name of a queue.
fn queue_kind_parser() -> impl TypedValueParser<Value = &'static QueueKind> {
    let names = KINDS.iter().map(|kind| PossibleValue::new(kind.name).help(kind.summary));
    PossibleValuesParser::new(names).map(|name| queue::kind(&name).expect("clap allows no other name"))
}

fn queue_arguments_help() -> String {
    let list =
        |parameters: &[Parameter]| parameters.iter().map(Parameter::to_string).collect::<Vec<_>>().join(", ");
    let unlimited: Vec<_> = KINDS.iter().filter(|kind| !kind.has_limit).map(|kind| kind.name).collect();
    let mut help = format!(
        "Arguments of the uplink's queue, separated by commas. Limits, of every queue but {}: {}",
        unlimited.join(", "),
        list(LIMIT_PARAMETERS)
    );
    for kind in KINDS.iter().filter(|kind| !kind.parameters.is_empty()) {
        help += &format!("; {}: {}", kind.name, list(kind.parameters));
    }
    help
}

/// The options of `mm-net` for the link.
#[derive(Args, Debug)]
#[command(next_help_heading = "Link")]
pub struct NetLink {
    /// Rate from inside to outside: a constant such as 2.8M or 468k, or a trace file
    #[arg(long, value_name = "RATE")]
    up: Option<String>,

    /// Rate from outside to inside
    #[arg(long, value_name = "RATE")]
    down: Option<String>,

    #[command(flatten)]
    options: LinkOptions,
}

impl Impairment for NetLink {
    fn build(&self, context: &mut NetworkContext<'_>) -> Result<Option<Duplex>> {
        match (&self.up, &self.down) {
            (Some(up), Some(down)) => {
                self.options.build(Rate::parse(up)?, Rate::parse(down)?, context).map(Some)
            }
            (None, None) if self.options.is_given() => {
                Err(Error::new("the options of a link need its rates; give --up and --down"))
            }
            (None, None) => Ok(None),
            _ => Err(Error::new("a link needs both rates; give --up and --down")),
        }
    }
}
