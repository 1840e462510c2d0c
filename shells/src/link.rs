//! A link as described on the command line: a rate and a queue.

use std::fmt::{self, Display};
use std::path::Path;
use std::sync::Arc;

use crate::element::{ConstantRate, Element, LinkObserver, ObservedQueue, TraceRate};
use crate::error::{Error, Result};
use crate::packet::TUN_HEADER_BYTES;
use crate::queue::{LinkFacts, QueueSpec};
use crate::random::Random;
use crate::time::Nanos;
use crate::trace::{Rounds, Trace};
use crate::units::parse_rate_bps;

/// How fast a link sends.
#[derive(Clone, Debug)]
pub enum Rate {
    Constant { bps: u64 },
    Trace { trace: Arc<Trace>, path: String },
}

impl Rate {
    /// Parse a constant rate such as `2.8M`, or read the trace at that path.
    ///
    /// A text that is both a rate and an existing file is an error: Mahimahi, which has no rates, would play the file.
    pub fn parse(text: &str) -> Result<Self> {
        let path = Path::new(text);
        match parse_rate_bps(text) {
            Ok(_) if path.exists() && !path.is_dir() => Err(Error::new(format!(
                "'{text}' is a rate, and a file here has that name; write ./{text} for the trace, or 0{text} for the rate"
            ))),
            Ok(bps) => Ok(Self::Constant { bps }),
            Err(_) => Ok(Self::Trace { trace: Arc::new(Trace::read(path)?), path: text.to_owned() }),
        }
    }

    fn mean_bps(&self) -> f64 {
        match self {
            Self::Constant { bps } => *bps as f64,
            Self::Trace { trace, .. } => trace.mean_rate_bps(),
        }
    }

    /// Bytes that count in addition to a packet's IP length. Mahimahi's sizes include the TUN header, so limits that
    /// users choose for its traces do, too.
    fn header_bytes(&self) -> usize {
        match self {
            Self::Constant { .. } => 0,
            Self::Trace { .. } => TUN_HEADER_BYTES,
        }
    }
}

impl Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant { bps } => write!(f, "{bps} bit/s"),
            Self::Trace { path, .. } => f.write_str(path),
        }
    }
}

/// One direction of a link.
#[derive(Clone, Debug)]
pub struct LinkSpec {
    pub rate: Rate,
    pub queue: QueueSpec,
    /// How often a trace is played.
    pub rounds: Rounds,
    /// The round-trip time of a packet that never waits, for a queue whose size depends on it.
    pub rtt: Option<Nanos>,
}

impl LinkSpec {
    /// Build the element; `start` is when the link begins.
    pub fn build(
        &self,
        start: Nanos,
        random: Random,
        observers: Vec<Box<dyn LinkObserver>>,
    ) -> Result<Box<dyn Element>> {
        let facts = LinkFacts {
            rate_bps: self.rate.mean_bps(),
            header_bytes: self.rate.header_bytes(),
            rtt: self.rtt,
        };
        let queue = ObservedQueue::new(self.queue.build(facts, random)?, observers);
        Ok(match &self.rate {
            Rate::Constant { bps } => Box::new(ConstantRate::new(*bps, start, queue)),
            Rate::Trace { trace, .. } => {
                Box::new(TraceRate::new(Arc::clone(trace), self.rounds, start, queue))
            }
        })
    }
}
