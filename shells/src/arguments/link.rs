//! The options of a link: queues, logs, how often a trace is played.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::element::{Duplex, LinkObserver};
use crate::error::{Error, Result, program_name};
use crate::link::{LinkSpec, Rate};
use crate::log::{Capture, LinkDescription, MahimahiLog, Meter, Outputs, PacketLog};
use crate::queue::spec::{QueueKind, QueueSpec};
use crate::random::Seed;
use crate::time::Nanos;
use crate::trace::Rounds;

/// Queues, logs and rounds of a link.
#[derive(Args, Debug)]
#[command(next_help_heading = "Link")]
pub struct LinkArguments {
    /// What happens when packets wait for the uplink [default: infinite]
    #[arg(long, value_enum)]
    uplink_queue: Option<QueueKind>,

    /// Arguments of the uplink's queue, separated by commas: packets=N, bytes=N, ms=MS, bdp=X (and rtt=MS) limit
    /// it; codel has target=MS, interval=MS and ecn=1, fq_codel the same and flows=N, pie qdelay_ref=MS, max_burst=MS
    /// and ecn=1
    #[arg(long, value_name = "NAME=NUMBER,…", default_value = "", hide_default_value = true)]
    uplink_queue_args: String,

    /// What happens when packets wait for the downlink [default: infinite]
    #[arg(long, value_enum)]
    downlink_queue: Option<QueueKind>,

    /// Arguments of the downlink's queue
    #[arg(long, value_name = "NAME=NUMBER,…", default_value = "", hide_default_value = true)]
    downlink_queue_args: String,

    /// A drop-tail queue of this size in both directions: 200ms (at the link's own rate), 70000 (bytes), 30p
    /// (packets) or 1.5bdp
    #[arg(long, value_name = "SIZE", conflicts_with_all = ["uplink_queue", "downlink_queue"])]
    queue: Option<String>,

    /// Write what happens at the uplink to this file, in Mahimahi's format
    #[arg(long, value_name = "FILE")]
    uplink_log: Option<PathBuf>,

    /// Write what happens at the downlink to this file
    #[arg(long, value_name = "FILE")]
    downlink_log: Option<PathBuf>,

    /// Write a row for every packet that left a link or was dropped there to this file, as CSV
    #[arg(long, value_name = "FILE")]
    packet_log: Option<PathBuf>,

    /// Write the same packets to this file as a capture (pcapng), which Wireshark reads
    #[arg(long, value_name = "FILE")]
    pcap: Option<PathBuf>,

    /// Tell on stderr, once a second, what each direction carries, drops and keeps waiting
    #[arg(long, visible_alias = "meter-all")]
    meter: bool,

    /// Tell the same of the uplink
    #[arg(long, visible_alias = "meter-uplink-delay")]
    meter_uplink: bool,

    /// Tell the same of the downlink
    #[arg(long, visible_alias = "meter-downlink-delay")]
    meter_downlink: bool,

    /// End with the first trace that ends, instead of repeating it
    #[arg(long)]
    once: bool,
}

/// What a link is built from besides its own options.
pub struct LinkParts<'a> {
    pub uplink: Rate,
    pub downlink: Rate,
    /// The queue of both directions where no option sets one.
    pub queue: QueueSpec,
    /// The round trip without waiting, if it is known.
    pub rtt: Option<Nanos>,
    pub start: Nanos,
    pub seed: Seed,
    pub outputs: &'a mut Outputs,
}

impl LinkArguments {
    /// Build both directions.
    pub fn build(&self, parts: LinkParts<'_>) -> Result<Duplex> {
        let LinkParts { uplink, downlink, queue, rtt, start, seed, outputs } = parts;
        let rounds = if self.once { Rounds::Once } else { Rounds::Forever };
        let link = |rate, direction: &Direction<'_>| -> Result<LinkSpec> {
            Ok(LinkSpec { rate, queue: self.queue(direction, &queue)?, rounds, rtt })
        };
        let (up, down) = (self.uplink(), self.downlink());
        let (uplink, downlink) = (link(uplink, &up)?, link(downlink, &down)?);

        let mut watching_up = mahimahi_log(&up, &uplink, start, outputs)?;
        let mut watching_down = mahimahi_log(&down, &downlink, start, outputs)?;
        if let Some(path) = &self.packet_log {
            let output = outputs.create(path)?;
            PacketLog::begin(&output);
            watching_up.push(Box::new(PacketLog::new(output.clone(), "up", start)));
            watching_down.push(Box::new(PacketLog::new(output, "down", start)));
        }
        if let Some(path) = &self.pcap {
            let [up, down] = Capture::begin(&outputs.create(path)?, &program_name());
            watching_up.push(Box::new(up));
            watching_down.push(Box::new(down));
        }
        if self.has_meter() {
            let meter = Meter::new(start);
            watching_up.extend((self.meter || self.meter_uplink).then(|| meter.uplink()));
            watching_down.extend((self.meter || self.meter_downlink).then(|| meter.downlink()));
            outputs.show(meter);
        }
        Ok(Duplex {
            uplink: uplink.build(start, seed.generator("link uplink"), watching_up)?,
            downlink: downlink.build(start, seed.generator("link downlink"), watching_down)?,
        })
    }

    /// Whether any of them was given.
    #[must_use]
    pub fn is_given(&self) -> bool {
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

    fn queue(&self, direction: &Direction<'_>, default: &QueueSpec) -> Result<QueueSpec> {
        match (direction.queue, &self.queue) {
            (Some(kind), _) => QueueSpec::parse(kind, direction.arguments),
            (None, _) if direction.has_queue() => Err(Error::new(format!(
                "the queue arguments '{}' need a queue; choose one with --{}-queue",
                direction.arguments,
                direction.name.to_lowercase()
            ))),
            (None, Some(size)) => QueueSpec::drop_tail(size),
            (None, None) => Ok(default.clone()),
        }
    }
}

/// The options of one direction.
struct Direction<'a> {
    /// As Mahimahi's logs call it.
    name: &'static str,
    queue: Option<QueueKind>,
    arguments: &'a str,
    log: Option<&'a Path>,
}

impl Direction<'_> {
    fn has_queue(&self) -> bool {
        self.queue.is_some() || !self.arguments.is_empty()
    }
}

/// The log of a direction, if one is wanted.
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
