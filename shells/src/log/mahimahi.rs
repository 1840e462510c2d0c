//! The events at a link, in the format of Mahimahi's mm-link.

use std::time::{SystemTime, UNIX_EPOCH};

use super::output::Output;
use crate::element::LinkObserver;
use crate::packet::{Packet, TUN_HEADER_BYTES};
use crate::time::{NANOS_PER_MILLISECOND, Nanos};
use crate::trace::OPPORTUNITY_BYTES;

/// The description of a link in the head of a log.
pub struct LinkDescription<'a> {
    /// `Uplink` or `Downlink`.
    pub direction: &'a str,
    /// The trace or rate.
    pub rate: &'a str,
    pub queue: &'a str,
    /// When the link began.
    pub start: Nanos,
}

/// A log with one line per event: its time in ms since the link began, the kind of event, and bytes.
///
/// `+` a packet arrives, `#` the link could send, `-` a packet leaves (with its delay in ms), `d` packets are dropped
/// (with their number). Sizes are IP length + 4.
pub struct MahimahiLog {
    output: Output,
    start: Nanos,
}

impl MahimahiLog {
    #[must_use]
    pub fn new(output: Output, link: &LinkDescription<'_>) -> Self {
        let words: Vec<_> = std::env::args_os().map(|word| quoted(&word.to_string_lossy())).collect();
        let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |age| age.as_millis());
        let path = output.path();
        output.line(format_args!(
            "# mahimahi mm-link ({}) [{}] > {}",
            link.direction,
            link.rate,
            path.display()
        ));
        output.line(format_args!("# command line: {}", words.join(" ")));
        output.line(format_args!("# queue: {}", link.queue));
        output.line(format_args!("# init timestamp: {now_ms}"));
        output.line(format_args!("# base timestamp: 0"));
        if let Ok(prefix) = std::env::var("MAHIMAHI_SHELL_PREFIX") {
            output.line(format_args!("# mahimahi config: {prefix}"));
        }
        Self { output, start: link.start }
    }

    fn milliseconds(&self, at: Nanos) -> u64 {
        at.saturating_sub(self.start) / NANOS_PER_MILLISECOND
    }
}

/// A word quoted for sh, whatever it contains.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn size(packet: &Packet) -> usize {
    packet.ip_length() + TUN_HEADER_BYTES
}

impl LinkObserver for MahimahiLog {
    fn arrived(&mut self, packet: &Packet, at: Nanos) {
        self.output.line(format_args!("{} + {}", self.milliseconds(at), size(packet)));
    }

    fn could_send(&mut self, at: Nanos) {
        self.output.line(format_args!("{} # {OPPORTUNITY_BYTES}", self.milliseconds(at)));
    }

    fn dropped(&mut self, packets: &[Packet], at: Nanos) {
        let bytes: usize = packets.iter().map(size).sum();
        self.output.line(format_args!("{} d {} {bytes}", self.milliseconds(at), packets.len()));
    }

    fn departed(&mut self, packet: &Packet, arrived: Nanos, at: Nanos) {
        // The difference of the rounded times, so that time minus delay is the time in the arrival's line.
        let delay = self.milliseconds(at) - self.milliseconds(arrived);
        self.output.line(format_args!("{} - {} {delay}", self.milliseconds(at), size(packet)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_as_upstream_quotes_them() {
        assert_eq!(quoted("mm-link"), "'mm-link'");
        assert_eq!(quoted("true  \"it's a\"; $x"), r#"'true  "it'\''s a"; $x'"#);
        assert_eq!(quoted(""), "''");
    }
}
