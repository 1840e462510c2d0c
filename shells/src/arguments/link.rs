//! The options of a link: queues, logs, how often a trace is played.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::element::{Duplex, Element, LinkObserver};
use crate::error::{Error, Result};
use crate::link::{LinkSpec, Rate};
use crate::log::{LinkDescription, MahimahiLog, Outputs};
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
    /// it; codel has target=MS, interval=MS and ecn=1, pie qdelay_ref=MS, max_burst=MS and ecn=1
    #[arg(
        long,
        value_name = "NAME=NUMBER,…",
        default_value = "",
        hide_default_value = true
    )]
    uplink_queue_args: String,

    /// What happens when packets wait for the downlink [default: infinite]
    #[arg(long, value_enum)]
    downlink_queue: Option<QueueKind>,

    /// Arguments of the downlink's queue
    #[arg(
        long,
        value_name = "NAME=NUMBER,…",
        default_value = "",
        hide_default_value = true
    )]
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
        let LinkParts {
            uplink,
            downlink,
            queue,
            rtt,
            start,
            seed,
            outputs,
        } = parts;
        let direction = |name: &str, rate, options: Direction<'_>, outputs: &mut Outputs| {
            let queue = self.queue(options, &queue)?;
            let link = LinkSpec {
                rate,
                queue,
                rounds: self.rounds(),
                rtt,
            };
            let random = seed.generator(&format!("link {name}"));
            link.build(
                start,
                random,
                observers(name, &link, start, options.log, outputs)?,
            )
        };
        let uplink: Box<dyn Element> = direction("Uplink", uplink, self.uplink(), outputs)?;
        Ok(Duplex {
            uplink,
            downlink: direction("Downlink", downlink, self.downlink(), outputs)?,
        })
    }

    /// Whether any of them was given.
    #[must_use]
    pub fn is_given(&self) -> bool {
        let given = |direction: Direction<'_>| {
            direction.queue.is_some() || !direction.arguments.is_empty() || direction.log.is_some()
        };
        given(self.uplink()) || given(self.downlink()) || self.queue.is_some() || self.once
    }

    fn uplink(&self) -> Direction<'_> {
        Direction {
            queue: self.uplink_queue,
            arguments: &self.uplink_queue_args,
            log: self.uplink_log.as_deref(),
        }
    }

    fn downlink(&self) -> Direction<'_> {
        Direction {
            queue: self.downlink_queue,
            arguments: &self.downlink_queue_args,
            log: self.downlink_log.as_deref(),
        }
    }

    fn queue(&self, direction: Direction<'_>, default: &QueueSpec) -> Result<QueueSpec> {
        match (direction.queue, &self.queue) {
            (Some(kind), _) => QueueSpec::parse(kind, direction.arguments),
            (None, _) if !direction.arguments.is_empty() => Err(Error::new(format!(
                "the queue arguments '{}' need a queue; choose one with --uplink-queue or --downlink-queue",
                direction.arguments
            ))),
            (None, Some(size)) => QueueSpec::drop_tail(size),
            (None, None) => Ok(default.clone()),
        }
    }

    fn rounds(&self) -> Rounds {
        if self.once { Rounds::Once } else { Rounds::Forever }
    }
}

#[derive(Clone, Copy)]
struct Direction<'a> {
    queue: Option<QueueKind>,
    arguments: &'a str,
    log: Option<&'a Path>,
}

fn observers(
    direction: &str,
    link: &LinkSpec,
    start: Nanos,
    log: Option<&Path>,
    outputs: &mut Outputs,
) -> Result<Vec<Box<dyn LinkObserver>>> {
    let mut observers: Vec<Box<dyn LinkObserver>> = Vec::new();
    if let Some(path) = log {
        let (rate, queue) = (link.rate.to_string(), link.queue.to_string());
        let description = LinkDescription {
            direction,
            rate: &rate,
            queue: &queue,
            start,
        };
        observers.push(Box::new(MahimahiLog::new(outputs.create(path)?, &description)));
    }
    Ok(observers)
}
