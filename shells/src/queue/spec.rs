//! A queue as people describe it: Mahimahi's name for it and its arguments.

use std::collections::BTreeMap;
use std::fmt::{self, Display};

use clap::ValueEnum;

use super::{CoDel, CoDelSettings, DropHead, DropTail, FqCoDel, Infinite, Limit, Pie, PieSettings, Queue};
use crate::error::{Error, Result};
use crate::random::Random;
use crate::time::{NANOS_PER_SECOND, Nanos};
use crate::units::{parse_decimal, parse_milliseconds};

/// What a queue does when packets wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum QueueKind {
    /// Keeps every packet
    #[default]
    Infinite,
    /// Drops what arrives when it is full
    Droptail,
    /// Drops what has waited longest when it is full
    Drophead,
    /// Drops when packets wait too long for too long (RFC 8289)
    Codel,
    /// Drops at random to hold a waiting time (RFC 8033)
    Pie,
    /// Lets flows take turns, each with a CoDel of its own (RFC 8290)
    #[value(name = "fq_codel")]
    FqCodel,
}

impl QueueKind {
    /// The names of its arguments.
    fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Infinite => &[],
            Self::Droptail | Self::Drophead => &["packets", "bytes", "ms", "bdp", "rtt"],
            Self::FqCodel => &["packets", "bytes", "ms", "bdp", "rtt", "target", "interval", "ecn", "flows"],
            Self::Codel => &["packets", "bytes", "ms", "bdp", "rtt", "target", "interval", "ecn"],
            Self::Pie => &["packets", "bytes", "ms", "bdp", "rtt", "qdelay_ref", "max_burst", "ecn"],
        }
    }
}

impl Display for QueueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.to_possible_value().expect("no kind is skipped").get_name())
    }
}

/// What a queue must know of its link.
#[derive(Clone, Copy, Debug)]
pub struct LinkFacts {
    /// The rate, on average.
    pub rate_bps: f64,
    /// Bytes counted on top of each packet's IP length.
    pub header_bytes: usize,
    /// The round trip without waiting, where it is known.
    pub rtt: Option<Nanos>,
}

/// A queue: its kind and its arguments; infinite by default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QueueSpec {
    kind: QueueKind,
    arguments: BTreeMap<String, String>,
}

impl QueueSpec {
    /// Parse arguments such as `packets=10,bytes=15000`; each must be one that the kind has.
    pub fn parse(kind: QueueKind, text: &str) -> Result<Self> {
        let mut arguments = BTreeMap::new();
        for argument in text.split(',').map(str::trim).filter(|argument| !argument.is_empty()) {
            let (name, value) = argument.split_once('=').unwrap_or((argument, ""));
            if !kind.arguments().contains(&name) {
                let allowed = match kind.arguments() {
                    [] => "none".to_owned(),
                    names => names.join(", "),
                };
                return Err(Error::new(format!(
                    "'{argument}' is not an argument of the queue {kind}; it has {allowed}"
                )));
            }
            if arguments.insert(name.to_owned(), value.to_owned()).is_some() {
                return Err(Error::new(format!("the queue argument {name} is given twice")));
            }
        }
        Ok(Self { kind, arguments })
    }

    /// A drop-tail queue of a size such as `200ms`, `70000` (bytes), `30p` (packets) or `1.5bdp`.
    pub fn drop_tail(size: &str) -> Result<Self> {
        let digits = size.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
        let name = match &size[digits.len()..] {
            "" | "B" => "bytes",
            "ms" => "ms",
            "p" => "packets",
            "bdp" => "bdp",
            _ => {
                return Err(Error::new(format!(
                    "'{size}' is not a queue size; give one such as 200ms, 70000 (bytes), 30p or 1.5bdp"
                )));
            }
        };
        Self::parse(QueueKind::Droptail, &format!("{name}={digits}"))
    }

    /// The queue itself, for a link of that rate.
    pub fn build(&self, link: LinkFacts, random: Random) -> Result<Box<dyn Queue>> {
        let limit = self.limit(link)?;
        let needed = || {
            limit.ok_or_else(|| {
                Error::new(format!("a {} queue needs a limit; give packets, bytes, ms or bdp", self.kind))
            })
        };
        Ok(match self.kind {
            QueueKind::Infinite => Box::new(Infinite::default()),
            QueueKind::Droptail => Box::new(DropTail::new(needed()?)),
            QueueKind::Drophead => Box::new(DropHead::new(needed()?)),
            QueueKind::Codel => Box::new(CoDel::new(self.codel_settings()?, limit.unwrap_or_default())),
            QueueKind::FqCodel => {
                // RFC 8290, 5.2.
                let flows = self.number("flows")?.unwrap_or(1024.0);
                if !(1.0..=65_536.0).contains(&flows) {
                    return Err(Error::new("the queue argument flows is from 1 to 65536"));
                }
                let limit = limit.unwrap_or(Limit::packets(10_240).counting_header(link.header_bytes));
                Box::new(FqCoDel::new(self.codel_settings()?, flows as usize, limit))
            }
            QueueKind::Pie => {
                let default = PieSettings::default();
                let settings = PieSettings {
                    reference: self.span("qdelay_ref")?.unwrap_or(default.reference),
                    burst: self.span("max_burst")?.unwrap_or(default.burst),
                    ecn: self.flag("ecn")?,
                };
                Box::new(Pie::new(settings, limit.unwrap_or_default(), random))
            }
        })
    }

    fn codel_settings(&self) -> Result<CoDelSettings> {
        let default = CoDelSettings::default();
        Ok(CoDelSettings {
            target: self.span("target")?.unwrap_or(default.target),
            interval: self.span("interval")?.unwrap_or(default.interval),
            ecn: self.flag("ecn")?,
        })
    }

    /// The limit in packets and bytes, if any argument sets one.
    fn limit(&self, link: LinkFacts) -> Result<Option<Limit>> {
        let bytes_in = |span: Nanos| link.rate_bps * span as f64 / (8 * NANOS_PER_SECOND) as f64;
        let mut bytes: Vec<f64> = Vec::new();
        bytes.extend(self.number("bytes")?);
        bytes.extend(self.span("ms")?.map(bytes_in));
        if let Some(products) = self.number("bdp")? {
            let rtt = self.span("rtt")?.or(link.rtt).ok_or_else(|| {
                Error::new("a queue size in bdp needs the round-trip time; give rtt=MS beside bdp")
            })?;
            bytes.push(products * bytes_in(rtt));
        }
        let bytes = bytes.into_iter().reduce(f64::min).map(|bytes| bytes.round() as usize);
        let packets = self.number("packets")?.map(|packets| packets as usize);
        if packets == Some(0) || bytes == Some(0) {
            return Err(Error::new("a queue of size 0 would drop everything; give at least 1"));
        }
        let limited = packets.is_some() || bytes.is_some();
        Ok(limited.then(|| Limit::new(packets, bytes).counting_header(link.header_bytes)))
    }

    fn number(&self, name: &str) -> Result<Option<f64>> {
        self.argument(name, |value| {
            parse_decimal(value)
                .filter(|number| number.is_finite())
                .ok_or_else(|| Error::new(format!("the queue argument {name}={value} is not a number")))
        })
    }

    fn span(&self, name: &str) -> Result<Option<Nanos>> {
        self.argument(name, parse_milliseconds)
    }

    fn flag(&self, name: &str) -> Result<bool> {
        let flag = self.argument(name, |value| match value {
            "" | "1" => Ok(true),
            "0" => Ok(false),
            _ => Err(Error::new(format!("the queue argument {name} is 0 or 1, not '{value}'"))),
        });
        Ok(flag?.unwrap_or(false))
    }

    fn argument<T>(&self, name: &str, parse: impl Fn(&str) -> Result<T>) -> Result<Option<T>> {
        self.arguments.get(name).map(|value| parse(value)).transpose()
    }
}

impl Display for QueueSpec {
    /// As Mahimahi's logs show a queue: `droptail [bytes=70000]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if self.arguments.is_empty() {
            return Ok(());
        }
        let arguments: Vec<_> =
            self.arguments.iter().map(|(name, value)| format!("{name}={value}")).collect();
        write!(f, " [{}]", arguments.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: LinkFacts = LinkFacts { rate_bps: 468_000.0, header_bytes: 0, rtt: None };

    fn limit(kind: QueueKind, text: &str) -> Option<Limit> {
        QueueSpec::parse(kind, text).unwrap().limit(LINK).unwrap()
    }

    #[test]
    fn a_limit_is_in_packets_bytes_milliseconds_or_bandwidth_delay_products() {
        assert_eq!(limit(QueueKind::Droptail, "bytes=70000"), Some(Limit::bytes(70_000)));
        assert_eq!(limit(QueueKind::Droptail, "ms=200"), Some(Limit::bytes(11_700)));
        assert_eq!(limit(QueueKind::Codel, "bdp=0.5, rtt=400"), Some(Limit::bytes(11_700)));
        assert_eq!(limit(QueueKind::Pie, "packets=3,bytes=70000"), Some(Limit::new(Some(3), Some(70_000))));
        assert_eq!(limit(QueueKind::Codel, ""), None);
    }

    #[test]
    fn a_size_alone_means_drop_tail() {
        for (size, arguments) in
            [("200ms", "ms=200"), ("70000", "bytes=70000"), ("30p", "packets=30"), ("1.5bdp", "bdp=1.5")]
        {
            assert_eq!(QueueSpec::drop_tail(size), QueueSpec::parse(QueueKind::Droptail, arguments));
        }
        assert!(QueueSpec::drop_tail("3 miles").is_err());
    }

    #[test]
    fn unknown_arguments_are_refused_with_those_there_are() {
        for (kind, text) in [
            (QueueKind::Droptail, "size=3"),
            (QueueKind::Droptail, "target=5"),
            (QueueKind::Infinite, "bytes=3"),
            (QueueKind::Pie, "interval=100"),
        ] {
            let error = QueueSpec::parse(kind, text).unwrap_err().to_string();
            assert!(error.contains(text) && error.contains("it has"), "{error}");
        }
        assert!(QueueSpec::parse(QueueKind::Droptail, "bytes=1,bytes=2").is_err());
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["bytes", "bytes=", "bytes=-1", "bytes=0", "bytes=1;packets=2", "bdp=1", ""] {
            let built = QueueSpec::parse(QueueKind::Droptail, text)
                .and_then(|spec| spec.build(LINK, Random::from_seed(0)).map(|_| ()));
            assert!(built.is_err(), "{text}");
        }
    }

    #[test]
    fn it_shows_as_in_mahimahis_logs() {
        let shown = |kind, text| QueueSpec::parse(kind, text).unwrap().to_string();
        assert_eq!(shown(QueueKind::Droptail, "bytes=70000"), "droptail [bytes=70000]");
        assert_eq!(shown(QueueKind::Infinite, ""), "infinite");
    }
}
