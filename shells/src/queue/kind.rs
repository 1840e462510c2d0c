//! The kinds of queues: the name, the arguments and the constructor of each.

use std::collections::BTreeMap;
use std::fmt::{self, Debug, Display};

use super::{Limit, Queue};
use crate::error::{Error, Result};
use crate::random::Random;
use crate::time::Nanos;
use crate::units::{parse_decimal, parse_milliseconds};

/// A kind of queue.
///
/// Each queue's file defines one, and [`super::KINDS`] lists them. The names and texts of the command line, the table
/// in README and the tests with random input are derived from that list.
pub struct QueueKind {
    /// Its name on the command line.
    pub name: &'static str,
    /// Its behaviour, in one line.
    pub summary: &'static str,
    /// Whether it has the arguments of a limit, [`LIMIT_PARAMETERS`].
    pub has_limit: bool,
    /// Its other arguments.
    pub parameters: &'static [Parameter],
    /// Make one.
    pub build: fn(QueueParts<'_>) -> Result<Box<dyn Queue>>,
}

/// An argument of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameter {
    pub name: &'static str,
    /// Its value, as the help writes it, such as `MS`.
    pub value: &'static str,
}

/// The arguments that limit a queue.
pub const LIMIT_PARAMETERS: &[Parameter] = &[
    Parameter::number("packets"),
    Parameter::number("bytes"),
    Parameter::milliseconds("ms"),
    Parameter { name: "bdp", value: "X" },
    Parameter::milliseconds("rtt"),
];

impl Parameter {
    #[must_use]
    pub const fn number(name: &'static str) -> Self {
        Self { name, value: "N" }
    }

    #[must_use]
    pub const fn milliseconds(name: &'static str) -> Self {
        Self { name, value: "MS" }
    }

    #[must_use]
    pub const fn flag(name: &'static str) -> Self {
        Self { name, value: "1" }
    }
}

impl Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.value)
    }
}

impl QueueKind {
    /// All its arguments.
    pub fn all_parameters(&self) -> impl Iterator<Item = &'static Parameter> {
        let limit = if self.has_limit { LIMIT_PARAMETERS } else { &[] };
        limit.iter().chain(self.parameters)
    }
}

impl Display for QueueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Debug for QueueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for QueueKind {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

/// The properties of its link that a queue needs.
#[derive(Clone, Copy, Debug)]
pub struct LinkFacts {
    /// The mean rate.
    pub rate_bps: f64,
    /// Bytes that count in addition to each packet's IP length.
    pub header_bytes: usize,
    /// The round-trip time of a packet that never waits, if it is known.
    pub rtt: Option<Nanos>,
}

/// The parts from which a queue is made.
pub struct QueueParts<'a> {
    /// The limit in its arguments, if they contain one.
    pub limit: Option<Limit>,
    pub link: LinkFacts,
    pub random: Random,
    pub(super) kind: &'static QueueKind,
    pub arguments: &'a QueueArguments,
}

impl QueueParts<'_> {
    /// The limit, for a queue that requires one.
    pub fn required_limit(&self) -> Result<Limit> {
        let missing =
            || Error::new(format!("a {} queue needs a limit; give packets, bytes, ms or bdp", self.kind));
        self.limit.ok_or_else(missing)
    }
}

/// The arguments of a queue as written, by their names.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueArguments(pub(super) BTreeMap<String, String>);

impl QueueArguments {
    /// The value of the argument `name` as a number.
    pub fn number(&self, name: &str) -> Result<Option<f64>> {
        self.parse(name, |value| {
            parse_decimal(value)
                .filter(|number| number.is_finite())
                .ok_or_else(|| Error::new(format!("the queue argument {name}={value} is not a number")))
        })
    }

    /// The value of the argument `name`, in milliseconds, as a time.
    pub fn milliseconds(&self, name: &str) -> Result<Option<Nanos>> {
        self.parse(name, parse_milliseconds)
    }

    /// Whether the argument `name` is 1; without a value it is 1, and if it is missing 0.
    pub fn flag(&self, name: &str) -> Result<bool> {
        let flag = self.parse(name, |value| match value {
            "" | "1" => Ok(true),
            "0" => Ok(false),
            _ => Err(Error::new(format!("the queue argument {name} is 0 or 1, not '{value}'"))),
        });
        Ok(flag?.unwrap_or(false))
    }

    fn parse<T>(&self, name: &str, parse: impl Fn(&str) -> Result<T>) -> Result<Option<T>> {
        self.0.get(name).map(|value| parse(value)).transpose()
    }
}
