//! A packet delivery trace: the instants at which a link can send, as Mahimahi writes them.

use std::io;
use std::path::Path;

use flate2::read::GzDecoder;

use crate::conditions::{Conditions, is_conditions};
use crate::error::{Attempt, Error, Result};
use crate::packet::FULL_PACKET_BYTES;
use crate::time::{NANOS_PER_MILLISECOND, NANOS_PER_SECOND, Nanos};

/// The bytes that one line of a trace allows: one packet of full size.
pub const OPPORTUNITY_BYTES: usize = FULL_PACKET_BYTES;

/// The first bytes of a file compressed by gzip (RFC 1952).
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// How often a trace is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounds {
    Once,
    Forever,
}

/// Delivery opportunities, each of [`OPPORTUNITY_BYTES`], repeated for ever.
///
/// The last line's time is the period: the first line of a round comes one period after the first line of the previous
/// round.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    opportunities: Vec<Nanos>,
}

impl Trace {
    /// Read a trace: one line per opportunity, with its time in whole milliseconds, never falling; or a conditions file
    /// with rates. It may be compressed by gzip.
    pub fn read(path: &Path) -> Result<Self> {
        let attempt = || format!("read the trace {} (a rate is written like 2.8M)", path.display());
        let bytes = std::fs::read(path).attempt(attempt)?;
        let text = if bytes.starts_with(&GZIP_MAGIC) {
            io::read_to_string(GzDecoder::new(&bytes[..])).attempt(attempt)?
        } else {
            String::from_utf8(bytes).attempt(attempt)?
        };
        Self::parse(&text, &path.display().to_string())
    }

    /// Parse a trace; errors refer to it as `name`.
    pub fn parse(text: &str, name: &str) -> Result<Self> {
        if is_conditions(text) {
            return Ok(Self { opportunities: Conditions::parse(text, name)?.opportunities(name)? });
        }
        let mut opportunities = Vec::new();
        for (index, line) in text.lines().enumerate() {
            let at = line
                .parse::<u32>()
                .map(|milliseconds| Nanos::from(milliseconds) * NANOS_PER_MILLISECOND)
                .map_err(|_| {
                    Error::new(format!(
                        "line {} of the trace {name} is not a time in whole milliseconds, {} at most: '{line}'",
                        index + 1,
                        u32::MAX
                    ))
                })?;
            if opportunities.last().is_some_and(|last| at < *last) {
                return Err(Error::new(format!(
                    "line {} of the trace {name} is earlier than the line before; sort the trace",
                    index + 1
                )));
            }
            opportunities.push(at);
        }
        match opportunities.last() {
            None => Err(Error::new(format!("the trace {name} is empty; give at least one time"))),
            Some(0) => Err(Error::new(format!(
                "the trace {name} ends at 0 ms; its last line is its period and must be later"
            ))),
            Some(_) => Ok(Self { opportunities }),
        }
    }

    /// Time of the `index`-th opportunity, counted from 0 over all rounds, since the trace began.
    #[must_use]
    pub fn opportunity(&self, index: u64) -> Nanos {
        index / self.lines() * self.period() + self.opportunities[(index % self.lines()) as usize]
    }

    /// Index of the first opportunity later than `at`.
    #[must_use]
    pub fn first_after(&self, at: Nanos) -> u64 {
        // No opportunity of an earlier round is later than `at`. The last one of this round, one period after the
        // round's start, always is.
        let round = at / self.period();
        let passed = self.opportunities.partition_point(|line| *line <= at % self.period());
        round * self.lines() + passed as u64
    }

    /// Number of opportunities in one round.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.opportunities.len() as u64
    }

    /// The average rate of the trace.
    #[must_use]
    pub fn mean_rate_bps(&self) -> f64 {
        let bits = self.lines() as f64 * (OPPORTUNITY_BYTES * 8) as f64;
        bits * NANOS_PER_SECOND as f64 / self.period() as f64
    }

    /// Length of one round.
    #[must_use]
    pub fn period(&self) -> Nanos {
        *self.opportunities.last().expect("a trace is never empty")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(text: &str) -> Trace {
        Trace::parse(text, "test").unwrap()
    }

    fn milliseconds(trace: &Trace, count: u64) -> Vec<Nanos> {
        (0..count).map(|index| trace.opportunity(index) / NANOS_PER_MILLISECOND).collect()
    }

    #[test]
    fn a_trace_repeats_with_its_last_time_as_period() {
        assert_eq!(milliseconds(&trace("1\n1\n5\n"), 7), [1, 1, 5, 6, 6, 10, 11]);
        assert_eq!(milliseconds(&trace("0\n3"), 4), [0, 3, 3, 6]);
    }

    #[test]
    fn the_first_opportunity_after_an_instant_is_the_one_counting_finds() {
        for text in ["1\n1\n5", "0\n3", "0\n0\n4\n4", "7"] {
            let trace = trace(text);
            for at in (0..40).map(|half| half * NANOS_PER_MILLISECOND / 2) {
                let counted = (0..).find(|index| trace.opportunity(*index) > at).unwrap();
                assert_eq!(trace.first_after(at), counted, "{text:?} at {at}");
            }
        }
    }

    #[test]
    fn rates_of_a_round_that_is_too_short_to_have_them_are_refused() {
        for text in ["time_s,rate_mbps\n0,0.5\n0.1,0\n", "time_s,rate_mbps\n0,11.88\n0.1,0\n0.2,0\n"] {
            let error = Trace::parse(text, "t").unwrap_err().to_string();
            assert!(error.contains("100 at least"), "{error}");
        }
        // Eight rows, each of which allows a fraction of a packet.
        let rows: String = (0..9).map(|number| format!("{},9.6\n", f64::from(number) * 0.015_625)).collect();
        assert_eq!(Trace::parse(&format!("time_s,rate_mbps\n{rows}"), "t").unwrap().lines(), 100);
        assert_eq!(Trace::parse("time_s,rate_mbps\n0,12\n0.1,0\n", "t").unwrap().lines(), 100);
    }

    #[test]
    fn a_trace_may_be_packed_by_gzip() {
        let path = std::env::temp_dir().join(format!("shells-trace-{}", std::process::id()));
        let file = std::fs::File::create(&path).unwrap();
        let mut packer = flate2::write::GzEncoder::new(file, flate2::Compression::default());
        io::Write::write_all(&mut packer, b"1\n5\n").unwrap();
        packer.finish().unwrap();
        let read = Trace::read(&path);
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read.unwrap(), trace("1\n5"));
    }

    #[test]
    fn a_broken_trace_is_refused_with_its_line() {
        for (text, complaint) in
            [("", "empty"), ("0\n", "ends at 0"), ("1\n\n2", "line 2"), ("5\n4", "line 2"), ("x", "line 1")]
        {
            let error = Trace::parse(text, "test").unwrap_err().to_string();
            assert!(error.contains(complaint), "{error}");
        }
    }
}
