//! A link as people describe it: a rate and a queue.

use std::path::Path;
use std::sync::Arc;

use clap::ValueEnum;

use crate::element::{ConstantRate, Element, TraceRate};
use crate::error::{Error, Result};
use crate::queue::{DropTail, Infinite, Limit, Queue};
use crate::time::Nanos;
use crate::trace::{TUN_HEADER_BYTES, Trace};
use crate::units::parse_rate_bps;

/// What a queue does when it is full.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum QueueKind {
    /// Keeps every packet
    #[default]
    Infinite,
    /// Drops what arrives when it is full
    Droptail,
}

/// One direction of a link.
#[derive(Clone, Debug)]
pub struct LinkSpec {
    rate: Rate,
    queue: QueueKind,
    limit: Option<Limit>,
}

#[derive(Clone, Debug)]
enum Rate {
    Constant { bps: u64 },
    Trace(Arc<Trace>),
}

impl LinkSpec {
    /// `rate` is a constant rate or the path of a trace, `queue_args` like `packets=10,bytes=15000`.
    pub fn parse(rate: &str, queue: QueueKind, queue_args: &str) -> Result<Self> {
        let rate = match parse_rate_bps(rate) {
            Ok(bps) => Rate::Constant { bps },
            Err(_) => Rate::Trace(Arc::new(Trace::read(Path::new(rate))?)),
        };
        // Mahimahi's sizes include the TUN header, and so do the limits given for its traces.
        let header = match rate {
            Rate::Constant { .. } => 0,
            Rate::Trace(_) => TUN_HEADER_BYTES,
        };
        let limit = parse_limit(queue_args)?.map(|limit| limit.counting_header(header));
        match (queue, limit) {
            (QueueKind::Infinite, Some(_)) => Err(Error::new(format!(
                "an infinite queue takes no arguments ('{queue_args}'); choose the queue droptail"
            ))),
            (QueueKind::Droptail, None) => Err(Error::new(
                "a droptail queue needs a limit; give packets=N and/or bytes=N",
            )),
            _ => Ok(Self { rate, queue, limit }),
        }
    }

    /// The element that does it; `start` is when a trace begins.
    #[must_use]
    pub fn element(&self, start: Nanos) -> Box<dyn Element> {
        match &self.rate {
            Rate::Constant { bps } => Box::new(ConstantRate::new(*bps, self.queue())),
            Rate::Trace(trace) => Box::new(TraceRate::new(Arc::clone(trace), start, self.queue())),
        }
    }

    fn queue(&self) -> Box<dyn Queue> {
        match (self.queue, self.limit) {
            (QueueKind::Droptail, Some(limit)) => Box::new(DropTail::new(limit)),
            _ => Box::new(Infinite::default()),
        }
    }
}

/// Parse `packets=N,bytes=N`; `None` when there is neither.
fn parse_limit(text: &str) -> Result<Option<Limit>> {
    let (mut packets, mut bytes) = (None, None);
    for argument in text
        .split(',')
        .map(str::trim)
        .filter(|argument| !argument.is_empty())
    {
        let wrong = || {
            Error::new(format!(
                "'{argument}' is not a queue argument; give packets=N or bytes=N, N at least 1"
            ))
        };
        let (name, value) = argument.split_once('=').ok_or_else(wrong)?;
        let value = value.parse().ok().filter(|value| *value > 0).ok_or_else(wrong)?;
        match name {
            "packets" => packets = Some(value),
            "bytes" => bytes = Some(value),
            _ => return Err(wrong()),
        }
    }
    Ok((packets.is_some() || bytes.is_some()).then(|| Limit::new(packets, bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_named_numbers() {
        assert_eq!(parse_limit(""), Ok(None));
        assert_eq!(parse_limit("bytes=70000"), Ok(Some(Limit::bytes(70000))));
        assert_eq!(
            parse_limit("packets=3, bytes=70000"),
            Ok(Some(Limit::new(Some(3), Some(70000))))
        );
    }

    #[test]
    fn unknown_arguments_are_refused_by_name() {
        for text in [
            "size=3",
            "bytes",
            "bytes=",
            "bytes=-1",
            "bytes=0",
            "bytes=1;packets=2",
        ] {
            let error = parse_limit(text).unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
    }

    #[test]
    fn a_limit_without_a_queue_that_has_one_is_refused() {
        assert!(LinkSpec::parse("1M", QueueKind::Infinite, "bytes=3").is_err());
        assert!(LinkSpec::parse("1M", QueueKind::Droptail, "").is_err());
    }
}
