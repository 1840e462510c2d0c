//! A queue as described on the command line: Mahimahi's name for it, and its arguments.

use std::collections::BTreeMap;
use std::fmt::{self, Display};

use super::{Limit, LinkFacts, Queue, QueueArguments, QueueKind, QueueParts, drop_tail, infinite};
use crate::error::{Error, Result};
use crate::random::Random;
use crate::time::{NANOS_PER_SECOND, Nanos};

/// A queue: its kind and its arguments; infinite by default.
#[derive(Clone, Debug, PartialEq)]
pub struct QueueSpec {
    kind: &'static QueueKind,
    arguments: QueueArguments,
}

impl Default for QueueSpec {
    fn default() -> Self {
        Self { kind: &infinite::KIND, arguments: QueueArguments::default() }
    }
}

impl QueueSpec {
    /// Parse arguments such as `packets=10,bytes=15000`; the kind must have each of them.
    pub fn parse(kind: &'static QueueKind, text: &str) -> Result<Self> {
        let mut arguments = BTreeMap::new();
        for argument in text.split(',').map(str::trim).filter(|argument| !argument.is_empty()) {
            let (name, value) = argument.split_once('=').unwrap_or((argument, ""));
            let names: Vec<_> = kind.all_parameters().map(|parameter| parameter.name).collect();
            if !names.contains(&name) {
                let allowed = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
                return Err(Error::new(format!(
                    "'{argument}' is not an argument of the queue {kind}; it has {allowed}"
                )));
            }
            if arguments.insert(name.to_owned(), value.to_owned()).is_some() {
                return Err(Error::new(format!("the queue argument {name} is given twice")));
            }
        }
        Ok(Self { kind, arguments: QueueArguments(arguments) })
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
        Self::parse(&drop_tail::KIND, &format!("{name}={digits}"))
    }

    /// The queue itself, for a link with these properties.
    pub fn build(&self, link: LinkFacts, random: Random) -> Result<Box<dyn Queue>> {
        let limit = self.limit(link)?;
        (self.kind.build)(QueueParts { limit, link, random, kind: self.kind, arguments: &self.arguments })
    }

    /// The limit in packets and bytes, if any argument sets one.
    fn limit(&self, link: LinkFacts) -> Result<Option<Limit>> {
        let bytes_in = |span: Nanos| link.rate_bps * span as f64 / (8 * NANOS_PER_SECOND) as f64;
        let mut bytes: Vec<f64> = Vec::new();
        bytes.extend(self.arguments.number("bytes")?);
        bytes.extend(self.arguments.milliseconds("ms")?.map(bytes_in));
        if let Some(products) = self.arguments.number("bdp")? {
            let rtt = self.arguments.milliseconds("rtt")?.or(link.rtt).ok_or_else(|| {
                Error::new("a queue size in bdp needs the round-trip time; give rtt=MS beside bdp")
            })?;
            bytes.push(products * bytes_in(rtt));
        }
        let bytes = bytes.into_iter().reduce(f64::min).map(|bytes| bytes.round() as usize);
        let packets = self.arguments.number("packets")?.map(|packets| packets as usize);
        if packets == Some(0) || bytes == Some(0) {
            return Err(Error::new("a queue of size 0 would drop everything; give at least 1"));
        }
        let limited = packets.is_some() || bytes.is_some();
        Ok(limited.then(|| Limit::new(packets, bytes).counting_header(link.header_bytes)))
    }
}

impl Display for QueueSpec {
    /// Write the queue as Mahimahi's logs do: `droptail [bytes=70000]`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.kind)?;
        if self.arguments.0.is_empty() {
            return Ok(());
        }
        let arguments: Vec<_> =
            self.arguments.0.iter().map(|(name, value)| format!("{name}={value}")).collect();
        write!(f, " [{}]", arguments.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{codel, pie};
    use super::*;

    const LINK: LinkFacts = LinkFacts { rate_bps: 468_000.0, header_bytes: 0, rtt: None };

    fn limit(kind: &'static QueueKind, text: &str) -> Option<Limit> {
        QueueSpec::parse(kind, text).unwrap().limit(LINK).unwrap()
    }

    #[test]
    fn a_limit_is_in_packets_bytes_milliseconds_or_bandwidth_delay_products() {
        assert_eq!(limit(&drop_tail::KIND, "bytes=70000"), Some(Limit::bytes(70_000)));
        assert_eq!(limit(&drop_tail::KIND, "ms=200"), Some(Limit::bytes(11_700)));
        assert_eq!(limit(&codel::KIND, "bdp=0.5, rtt=400"), Some(Limit::bytes(11_700)));
        assert_eq!(limit(&pie::KIND, "packets=3,bytes=70000"), Some(Limit::new(Some(3), Some(70_000))));
        assert_eq!(limit(&codel::KIND, ""), None);
    }

    #[test]
    fn a_size_alone_means_drop_tail() {
        for (size, arguments) in
            [("200ms", "ms=200"), ("70000", "bytes=70000"), ("30p", "packets=30"), ("1.5bdp", "bdp=1.5")]
        {
            assert_eq!(QueueSpec::drop_tail(size), QueueSpec::parse(&drop_tail::KIND, arguments));
        }
        assert!(QueueSpec::drop_tail("3 miles").is_err());
    }

    #[test]
    fn an_unknown_argument_is_refused_with_a_list_of_the_known_ones() {
        for (kind, text) in [
            (&drop_tail::KIND, "size=3"),
            (&drop_tail::KIND, "target=5"),
            (&infinite::KIND, "bytes=3"),
            (&pie::KIND, "interval=100"),
        ] {
            let error = QueueSpec::parse(kind, text).unwrap_err().to_string();
            assert!(error.contains(text) && error.contains("it has"), "{error}");
        }
        assert!(QueueSpec::parse(&drop_tail::KIND, "bytes=1,bytes=2").is_err());
    }

    #[test]
    fn nonsense_is_refused() {
        for text in ["bytes", "bytes=", "bytes=-1", "bytes=0", "bytes=1;packets=2", "bdp=1", ""] {
            let built = QueueSpec::parse(&drop_tail::KIND, text)
                .and_then(|spec| spec.build(LINK, Random::from_seed(0)).map(|_| ()));
            assert!(built.is_err(), "{text}");
        }
    }

    #[test]
    fn it_is_written_as_in_mahimahis_logs() {
        let written = |kind, text| QueueSpec::parse(kind, text).unwrap().to_string();
        assert_eq!(written(&drop_tail::KIND, "bytes=70000"), "droptail [bytes=70000]");
        assert_eq!(written(&infinite::KIND, ""), "infinite");
    }
}
