//! A conditions file: the rate, the delay and the loss of a direction over time, as comma-separated values.

use std::path::Path;

use crate::error::{Attempt, Error, Result};
use crate::time::{NANOS_PER_MILLISECOND, Nanos};
use crate::units::{parse_decimal, parse_milliseconds, parse_probability, parse_seconds};

/// The largest file that is read, in bytes.
const LARGEST_FILE_BYTES: u64 = 64 << 20;

/// The highest rate, and the most opportunities in a round: larger values are refused, since they would fill the
/// memory.
const MOST_MBPS: f64 = 100_000.0;
const MOST_OPPORTUNITIES: f64 = 50e6;

/// A link sends whole packets: with fewer packets in a round, its mean rate would be off by more than 1 %.
const LEAST_OPPORTUNITIES: usize = 100;

/// The bits of a full packet that count towards a rate: its IP length. An opportunity sends one such packet.
const PACKET_BITS: f64 = 12_000.0;

/// Whether a file is a conditions file: its header has several columns, while delivery traces contain only numbers.
///
/// `tuning.conditions` in Python decides in the same way.
#[must_use]
pub fn is_conditions(text: &str) -> bool {
    let header = text.lines().map(str::trim).find(|line| !line.is_empty() && !line.starts_with('#'));
    header.is_some_and(|header| header.contains(','))
}

/// The values from one row's time until the next row's.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Condition {
    pub mbps: f64,
    pub delay: Nanos,
    pub loss: f64,
}

/// Conditions over time, repeated for ever.
///
/// The last row's time is the period, as in a delivery trace. Its values are checked but never apply.
#[derive(Clone, Debug, PartialEq)]
pub struct Conditions {
    rows: Vec<(Nanos, Condition)>,
    period: Nanos,
    has_rate: bool,
}

impl Conditions {
    /// Read a file; see [`Conditions::parse`].
    pub fn read(path: &Path) -> Result<Self> {
        let attempt = || format!("read the conditions {}", path.display());
        let bytes = std::fs::metadata(path).attempt(attempt)?.len();
        if bytes > LARGEST_FILE_BYTES {
            return Err(Error::new(format!(
                "the conditions {} are larger than 64 MiB ({bytes} bytes); give fewer rows",
                path.display()
            )));
        }
        Self::parse(&std::fs::read_to_string(path).attempt(attempt)?, &path.display().to_string())
    }

    /// Parse a file: a header with `time_s` and at least one of `rate_mbps`, `delay_ms`, `loss`, then rows whose times
    /// begin at 0 and rise. Lines that begin with `#` are comments. Errors refer to the file as `name`.
    pub fn parse(text: &str, name: &str) -> Result<Self> {
        let wrong =
            |line: usize, what: String| Error::new(format!("line {line} of the conditions {name}: {what}"));
        let mut lines = text
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line.trim()))
            .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let (number, header) = lines
            .next()
            .ok_or_else(|| Error::new(format!("the conditions {name} are empty; give a header and rows")))?;
        let columns: Vec<_> = header.split(',').map(str::trim).collect();
        for (index, column) in columns.iter().enumerate() {
            if columns[..index].contains(column) {
                return Err(wrong(number, format!("the column {column} stands twice")));
            }
            match *column {
                "time_s" | "rate_mbps" | "delay_ms" | "loss" => {}
                other => {
                    return Err(wrong(
                        number,
                        format!("'{other}' is not time_s, rate_mbps, delay_ms or loss"),
                    ));
                }
            }
        }
        if !columns.contains(&"time_s") || columns.len() < 2 {
            return Err(wrong(number, "give time_s and at least one of rate_mbps, delay_ms, loss".into()));
        }
        let mut rows: Vec<(Nanos, Condition)> = Vec::new();
        let mut last_number = number;
        for (number, line) in lines {
            last_number = number;
            let values: Vec<_> = line.split(',').map(str::trim).collect();
            if values.len() != columns.len() {
                return Err(wrong(number, format!("{} values for {} columns", values.len(), columns.len())));
            }
            let (mut at, mut condition) = (0, Condition::default());
            for (column, value) in columns.iter().zip(values) {
                let named = |error: Error| wrong(number, format!("{column}: {error}"));
                match *column {
                    "time_s" => at = parse_seconds(value).map_err(named)?,
                    "rate_mbps" => condition.mbps = parse_mbps(value).map_err(named)?,
                    "delay_ms" => condition.delay = parse_milliseconds(value).map_err(named)?,
                    _ => condition.loss = parse_probability(value).map_err(named)?,
                }
            }
            match rows.last() {
                None if at != 0 => return Err(wrong(number, "the first time is not 0".into())),
                Some((last, _)) if at <= *last => {
                    return Err(wrong(
                        number,
                        "its time is not later than the row's before; sort the rows".into(),
                    ));
                }
                _ => rows.push((at, condition)),
            }
        }
        // The last row ends the round.
        match rows.pop() {
            Some((period, _)) if !rows.is_empty() => {
                if period % NANOS_PER_MILLISECOND != 0 {
                    let what = "the last time is the period, and must be in whole milliseconds";
                    return Err(wrong(last_number, what.into()));
                }
                Ok(Self { rows, period, has_rate: columns.contains(&"rate_mbps") })
            }
            _ => Err(Error::new(format!(
                "the conditions {name} have fewer than 2 rows; the last row's time is the period"
            ))),
        }
    }

    /// The instants of one round at which a link of this rate can send a full packet: as soon as enough bits have
    /// passed, in whole milliseconds, as in a delivery trace. The last one ends the round. Without a rate this is an
    /// error.
    ///
    /// `tuning.conditions` in Python computes the same.
    pub fn opportunities(&self, name: &str) -> Result<Vec<Nanos>> {
        let due = self.due(name)?;
        if due.len() < LEAST_OPPORTUNITIES {
            return Err(Error::new(format!(
                "the rates of {name} let {} packets through in a round, and must let through {LEAST_OPPORTUNITIES} at \
                 least; give a longer round",
                due.len()
            )));
        }
        Ok(self.closed(due))
    }

    /// When packets are due in one round.
    fn due(&self, name: &str) -> Result<Vec<Nanos>> {
        if !self.has_rate {
            return Err(Error::new(format!(
                "the conditions {name} have no column rate_mbps, so they are no trace"
            )));
        }
        let ends = self.rows.iter().skip(1).map(|(at, _)| *at).chain([self.period]);
        let mut opportunities = Vec::new();
        let mut bits = 0.0;
        for ((begin, condition), end) in self.rows.iter().zip(ends) {
            let bits_per_ms = condition.mbps * 1e3;
            let begin_ms = *begin as f64 / NANOS_PER_MILLISECOND as f64;
            let more_bits = (end as f64 / NANOS_PER_MILLISECOND as f64 - begin_ms) * bits_per_ms;
            // The rounding error of a float must not cost a packet.
            let packets = ((bits + more_bits) / PACKET_BITS + 1e-6).floor();
            if opportunities.len() as f64 + packets > MOST_OPPORTUNITIES {
                return Err(Error::new(format!(
                    "the conditions {name} let more than {MOST_OPPORTUNITIES:e} packets through; give fewer rows"
                )));
            }
            for packet in 1..=packets as u64 {
                let due_ms = begin_ms + (packet as f64 * PACKET_BITS - bits) / bits_per_ms;
                // The rounding error of a float must not add a millisecond.
                let at_ms = (due_ms - 1e-6).ceil();
                opportunities.push(at_ms as Nanos * NANOS_PER_MILLISECOND);
            }
            bits += more_bits - packets * PACKET_BITS;
        }
        Ok(opportunities)
    }

    /// The opportunities of a round, the last of them at its end, as in a trace. If no packet is due there, an
    /// opportunity is added, and a packet can leave before the rate allows it.
    fn closed(&self, mut due: Vec<Nanos>) -> Vec<Nanos> {
        if due.last().is_some_and(|last| *last < self.period) {
            due.push(self.period);
        }
        due
    }

    /// The condition that applies this long after the beginning.
    #[must_use]
    pub fn at(&self, since_start: Nanos) -> Condition {
        let within = since_start % self.period;
        self.rows[self.rows.partition_point(|(at, _)| *at <= within) - 1].1
    }

    /// The shortest delay in the file.
    #[must_use]
    pub fn shortest_delay(&self) -> Nanos {
        self.rows.iter().map(|(_, condition)| condition.delay).min().unwrap_or(0)
    }
}

fn parse_mbps(text: &str) -> Result<f64> {
    parse_decimal(text)
        .filter(|mbps| (0.0..=MOST_MBPS).contains(mbps))
        .ok_or_else(|| Error::new(format!("'{text}' is not a rate in Mbit/s; give a number such as 2.8")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_holds_until_the_next_and_the_last_time_is_the_period() {
        let conditions =
            Conditions::parse("# made up\ntime_s,delay_ms,loss\n0,20,0\n1,30,0.5\n3,30,0.5\n", "t").unwrap();
        let milliseconds =
            [0, 999, 1000, 2999, 3000, 3999, 4000].map(|ms| conditions.at(ms * 1_000_000).delay / 1_000_000);
        assert_eq!(milliseconds, [20, 20, 30, 30, 20, 20, 30]);
        assert_eq!(conditions.at(1_000_000_000).loss, 0.5);
    }

    #[test]
    fn a_rate_is_one_opportunity_for_each_full_packet_and_the_last_ends_the_round() {
        let opportunities_ms = |text: &str| -> Vec<Nanos> {
            let conditions = Conditions::parse(text, "t").unwrap();
            conditions
                .closed(conditions.due("t").unwrap())
                .iter()
                .map(|at| at / NANOS_PER_MILLISECOND)
                .collect()
        };
        // One packet per millisecond for 3 ms, none for 2 ms, then 1.5 per millisecond for 2 ms.
        let text = "time_s,rate_mbps\n0,12\n0.003,0\n0.005,18\n0.007,0\n";
        assert_eq!(opportunities_ms(text), [1, 2, 3, 6, 7, 7]);
        // A partial packet left over from one row is completed in the next.
        assert_eq!(opportunities_ms("time_s,rate_mbps\n0,1\n0.006,2\n0.1,1\n").len(), 17);
        assert_eq!(opportunities_ms("time_s,rate_mbps\n0,12\n0.001,0\n0.01,0\n"), [1, 10]);
        for text in ["time_s,loss\n0,0\n1,0\n", "time_s,rate_mbps\n0,0\n1,0\n"] {
            assert!(Conditions::parse(text, "t").unwrap().opportunities("t").is_err());
        }
        assert!(
            Conditions::parse("time_s,rate_mbps\n0,100000\n10,0\n", "t").unwrap().opportunities("t").is_err()
        );
    }

    /// The same rates and opportunities as in Python (`tests/tuning/test_conditions.py`).
    #[test]
    fn opportunities_are_those_of_the_vectors() {
        let vectors = include_str!("../../tests/vectors/opportunities.txt");
        for block in vectors.split("\n\n").filter(|block| !block.trim().is_empty()) {
            let (text, expected) = block.split_once("=> ").unwrap();
            let conditions = Conditions::parse(text, "vector").unwrap();
            let seen: Vec<_> = conditions
                .closed(conditions.due("vector").unwrap())
                .iter()
                .map(|at| (at / NANOS_PER_MILLISECOND).to_string())
                .collect();
            assert_eq!(seen.join(" "), expected.trim());
        }
    }

    #[test]
    fn columns_stand_in_any_order_and_may_be_left_out() {
        let conditions = Conditions::parse("loss,time_s\n0.1,0\n0.1,1", "t").unwrap();
        assert_eq!(conditions.at(0), Condition { loss: 0.1, ..Condition::default() });
    }

    #[test]
    fn a_broken_file_is_refused_with_its_line() {
        for (text, complaint) in [
            ("", "empty"),
            ("time_s,delay_ms\n", "fewer than 2"),
            ("time_s,delay_ms\n0,1\n", "fewer than 2"),
            ("delay_ms\n1\n", "line 1"),
            ("time_s\n0\n1\n", "line 1"),
            ("time_s,delay\n0,1\n", "'delay' is not"),
            ("time_s,loss,loss\n", "twice"),
            ("time_s,rate_mbps\n0,fast\n", "line 2"),
            ("time_s,rate_mbps\n0,100001\n", "line 2"),
            ("time_s,delay_ms\n1,1\n2,1\n", "line 2"),
            ("time_s,delay_ms\n0,1\n2,1\n1,1\n", "line 4"),
            ("time_s,delay_ms\n0,-1\n", "line 2"),
            ("time_s,delay_ms\n0,nan\n", "line 2"),
            ("time_s,loss\n0,1.5\n", "line 2"),
            ("time_s,loss\n0\n", "line 2"),
            ("time_s,loss\n0,0\n0.0005,0\n", "line 3"),
        ] {
            let error = Conditions::parse(text, "t").unwrap_err().to_string();
            assert!(error.contains(complaint), "{text:?}: {error}");
        }
    }
}
