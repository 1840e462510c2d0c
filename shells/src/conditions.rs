//! A conditions file: the delay and the loss of a direction over time, as comma-separated values.

use std::path::Path;

use crate::error::{Attempt, Error, Result};
use crate::time::Nanos;
use crate::units::{parse_milliseconds, parse_probability, parse_seconds};

/// The largest file that is read, in bytes.
const LARGEST_FILE_BYTES: u64 = 64 << 20;

/// What holds from one row's time until the next row's.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Condition {
    pub delay: Nanos,
    pub loss: f64,
}

/// Conditions over time, repeated for ever.
///
/// The last row's time is the period, as in a delivery trace; its values are checked, and hold for no time.
#[derive(Clone, Debug, PartialEq)]
pub struct Conditions {
    rows: Vec<(Nanos, Condition)>,
    period: Nanos,
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

    /// Parse a file: a header with `time_s` and at least one of `delay_ms`, `loss`, then rows whose times begin at 0
    /// and rise. Lines that begin with `#` are comments. `name` is what an error calls the file.
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
                "time_s" | "delay_ms" | "loss" => {}
                "rate_mbps" => {
                    let what = "rate_mbps cannot be applied by mm-net; give the rate as a delivery trace (--up, --down)";
                    return Err(wrong(number, what.into()));
                }
                other => return Err(wrong(number, format!("'{other}' is not time_s, delay_ms or loss"))),
            }
        }
        if !columns.contains(&"time_s") || columns.len() < 2 {
            return Err(wrong(number, "give time_s and at least one of delay_ms, loss".into()));
        }
        let mut rows: Vec<(Nanos, Condition)> = Vec::new();
        for (number, line) in lines {
            let values: Vec<_> = line.split(',').map(str::trim).collect();
            if values.len() != columns.len() {
                return Err(wrong(number, format!("{} values for {} columns", values.len(), columns.len())));
            }
            let (mut at, mut condition) = (0, Condition::default());
            for (column, value) in columns.iter().zip(values) {
                let named = |error: Error| wrong(number, format!("{column}: {error}"));
                match *column {
                    "time_s" => at = parse_seconds(value).map_err(named)?,
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
            Some((period, _)) if !rows.is_empty() => Ok(Self { rows, period }),
            _ => Err(Error::new(format!(
                "the conditions {name} have fewer than 2 rows; the last row's time is the period"
            ))),
        }
    }

    /// What holds so long after the beginning.
    #[must_use]
    pub fn at(&self, since_start: Nanos) -> Condition {
        let within = since_start % self.period;
        self.rows[self.rows.partition_point(|(at, _)| *at <= within) - 1].1
    }

    /// The shortest delay of all.
    #[must_use]
    pub fn shortest_delay(&self) -> Nanos {
        self.rows.iter().map(|(_, condition)| condition.delay).min().unwrap_or(0)
    }
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
    fn columns_stand_in_any_order_and_may_be_left_out() {
        let conditions = Conditions::parse("loss,time_s\n0.1,0\n0.1,1", "t").unwrap();
        assert_eq!(conditions.at(0), Condition { delay: 0, loss: 0.1 });
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
            ("time_s,rate_mbps\n0,1\n", "delivery trace"),
            ("time_s,delay_ms\n1,1\n2,1\n", "line 2"),
            ("time_s,delay_ms\n0,1\n2,1\n1,1\n", "line 4"),
            ("time_s,delay_ms\n0,-1\n", "line 2"),
            ("time_s,delay_ms\n0,nan\n", "line 2"),
            ("time_s,loss\n0,1.5\n", "line 2"),
            ("time_s,loss\n0\n", "line 2"),
        ] {
            let error = Conditions::parse(text, "t").unwrap_err().to_string();
            assert!(error.contains(complaint), "{text:?}: {error}");
        }
    }
}
