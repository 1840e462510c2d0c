//! The packets that an element has finished with, in the order in which they leave.

use std::collections::VecDeque;

use super::Departure;
use crate::packet::Packet;
use crate::time::Nanos;

/// Packets and the instants at which they leave, sorted by instant, then by arrival.
#[derive(Debug, Default)]
pub struct Outbox(VecDeque<Departure>);

impl Outbox {
    /// Add a packet that leaves at `at`, after every packet that leaves then or earlier.
    pub fn push(&mut self, packet: Packet, at: Nanos) {
        let place = match self.last() {
            Some(last) if last > at => self.0.partition_point(|other| other.at <= at),
            _ => self.0.len(),
        };
        self.0.insert(place, Departure { packet, at });
    }

    /// Take the next packet that leaves at or before `now`.
    pub fn pop(&mut self, now: Nanos) -> Option<Departure> {
        if self.next_due()? > now {
            return None;
        }
        self.0.pop_front()
    }

    /// When the next packet leaves.
    #[must_use]
    pub fn next_due(&self) -> Option<Nanos> {
        self.0.front().map(|departure| departure.at)
    }

    /// When the last packet leaves.
    #[must_use]
    pub fn last(&self) -> Option<Nanos> {
        self.0.back().map(|departure| departure.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_leave_by_time_and_then_by_arrival() {
        let mut outbox = Outbox::default();
        for (length, at) in [(1, 20), (2, 10), (3, 20), (4, 10), (5, 30)] {
            outbox.push(Packet::new(&vec![0; length]), at);
        }
        assert_eq!((outbox.next_due(), outbox.last()), (Some(10), Some(30)));
        let lengths = std::iter::from_fn(|| outbox.pop(20)).map(|departure| departure.packet.ip_length());
        assert_eq!(lengths.collect::<Vec<_>>(), [2, 4, 1, 3]);
        assert_eq!(outbox.next_due(), Some(30));
    }
}
