//! Numbers as written on the command line, parsed into exact values.

use std::ops::RangeInclusive;

use crate::error::{Error, Result};
use crate::time::{NANOS_PER_MILLISECOND, NANOS_PER_SECOND, Nanos};

/// Parse a rate such as `2.8M`, `468k`, `1G` or `125000` (bit/s; decimal prefixes, either case).
pub fn parse_rate_bps(text: &str) -> Result<u64> {
    let (number, factor) = match text.as_bytes().last() {
        Some(b'k' | b'K') => (&text[..text.len() - 1], 1e3),
        Some(b'm' | b'M') => (&text[..text.len() - 1], 1e6),
        Some(b'g' | b'G') => (&text[..text.len() - 1], 1e9),
        _ => (text, 1.0),
    };
    parse_scaled(number, factor, 1.0..=1e12)
        .ok_or_else(|| wrong(text, "a rate", "bit/s from 1 to 1000G, such as 468k or 2.8M"))
}

/// Parse a span given in milliseconds, fractions allowed, such as `37` or `0.5`.
pub fn parse_milliseconds(text: &str) -> Result<Nanos> {
    parse_scaled(text, NANOS_PER_MILLISECOND as f64, 0.0..=1e15)
        .ok_or_else(|| wrong(text, "a time in milliseconds", "a number such as 37 or 0.5"))
}

/// Parse a span given in seconds, fractions allowed.
pub fn parse_seconds(text: &str) -> Result<Nanos> {
    parse_scaled(text, NANOS_PER_SECOND as f64, 0.0..=1e18)
        .ok_or_else(|| wrong(text, "a time in seconds", "a number such as 2 or 0.5"))
}

/// Parse a probability, 0 to 1.
pub fn parse_probability(text: &str) -> Result<f64> {
    parse_decimal(text)
        .filter(|p| (0.0..=1.0).contains(p))
        .ok_or_else(|| wrong(text, "a probability", "a number from 0 to 1"))
}

/// Parse the number of a packet; the first is 1.
pub fn parse_packet_number(text: &str) -> Result<u64> {
    let is_whole = text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|number| is_whole && *number > 0);
    number.ok_or_else(|| wrong(text, "the number of a packet", "a whole number from 1, such as 120"))
}

/// The probability of loss in each direction such that a packet or its answer is lost with the given probability:
/// 1-√(1-p).
#[must_use]
pub fn one_way_loss(round_trip: f64) -> f64 {
    1.0 - (1.0 - round_trip).sqrt()
}

/// A number multiplied by a factor, rounded to a whole number within a range.
fn parse_scaled(text: &str, factor: f64, range: RangeInclusive<f64>) -> Option<u64> {
    let value = (parse_decimal(text)? * factor).round();
    range.contains(&value).then_some(value as u64)
}

fn wrong(text: &str, wanted: &str, example: &str) -> Error {
    Error::new(format!("'{text}' is not {wanted}; give {example}"))
}

/// A number written in digits with at most one point: `f64` without `inf`, `nan`, signs and exponents.
pub fn parse_decimal(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    if plain { text.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_take_decimal_prefixes() {
        assert_eq!(parse_rate_bps("2.8M"), Ok(2_800_000));
        assert_eq!(parse_rate_bps("468k"), Ok(468_000));
        assert_eq!(parse_rate_bps("0.468M"), Ok(468_000));
        assert_eq!(parse_rate_bps("1G"), Ok(1_000_000_000));
        assert_eq!(parse_rate_bps("125000"), Ok(125_000));
    }

    #[test]
    fn text_that_is_no_rate_is_refused() {
        for text in ["", "M", "-1M", "0", "1e6", "nan", "inf", "1.2.3k", "2T", "5 M"] {
            assert!(parse_rate_bps(text).is_err(), "{text}");
        }
    }

    #[test]
    fn milliseconds_may_have_fractions() {
        assert_eq!(parse_milliseconds("37"), Ok(37_000_000));
        assert_eq!(parse_milliseconds("0.0005"), Ok(500));
        assert!(parse_milliseconds("-1").is_err());
        assert!(parse_milliseconds("1ms").is_err());
    }

    #[test]
    fn a_round_trip_is_lost_when_either_way_is() {
        assert!((one_way_loss(0.033) - 0.016_638).abs() < 1e-6);
        let one_way = one_way_loss(0.06);
        assert!((1.0 - (1.0 - one_way) * (1.0 - one_way) - 0.06).abs() < 1e-12);
    }

    #[test]
    fn probabilities_are_within_0_and_1() {
        assert_eq!(parse_probability("0.0166"), Ok(0.0166));
        assert!(parse_probability("1.01").is_err());
        assert!(parse_probability("-0").is_err());
    }
}
