//! A link of constant rate, serialised byte by byte, with a queue.

use super::{Departure, Element, ObservedQueue, Outbox};
use crate::packet::Packet;
use crate::queue::Waiting;
use crate::time::{NANOS_PER_SECOND, Nanos};
use crate::trace::OPPORTUNITY_BYTES;

/// Sends one packet at a time; a packet of n bytes (IP length) takes 8n / rate.
///
/// The packet being sent has left the queue: a queue's limit counts only the packets that wait.
pub struct ConstantRate {
    rate_bps: u64,
    queue: ObservedQueue,
    busy: Option<Busy>,
    outbox: Outbox,
    /// When the link began.
    start: Nanos,
    /// How much the link could have sent since it began, in units of [`OPPORTUNITY_BYTES`]; observers see this.
    opportunities: u64,
}

/// A stretch of time in which the link sends without a pause.
///
/// The end of each packet is computed from its start, so that rounding to nanoseconds never adds up.
struct Busy {
    since: Nanos,
    /// Bits sent since then, including the packet that is being sent.
    bits: u128,
    sending: Waiting,
}

impl ConstantRate {
    /// A link that begins at `start`.
    ///
    /// # Panics
    /// At rate 0, which would never send.
    #[must_use]
    pub fn new(rate_bps: u64, start: Nanos, queue: impl Into<ObservedQueue>) -> Self {
        assert!(rate_bps > 0, "a link of rate 0 never sends");
        Self { rate_bps, queue: queue.into(), busy: None, outbox: Outbox::default(), start, opportunities: 0 }
    }

    /// How long this many bits take, rounded up.
    fn span(&self, bits: u128) -> Nanos {
        (bits * u128::from(NANOS_PER_SECOND)).div_ceil(u128::from(self.rate_bps)) as Nanos
    }

    /// When the last bit of the packet being sent leaves.
    fn end(&self, busy: &Busy) -> Nanos {
        busy.since + self.span(busy.bits)
    }

    /// Bring the link up to `now`: finish the packets that end by then, and start the next.
    fn advance(&mut self, now: Nanos) {
        while let Some(busy) = self.busy.take() {
            let end = self.end(&busy);
            if end > now {
                self.busy = Some(busy);
                break;
            }
            self.report_opportunities(end);
            self.queue.departed(&busy.sending, end);
            self.outbox.push(busy.sending.packet, end);
            if let Some(sending) = self.queue.dequeue(end) {
                let bits = busy.bits + bits(&sending.packet);
                self.busy = Some(Busy { since: busy.since, bits, sending });
            }
        }
        self.report_opportunities(now);
    }

    fn start_if_idle(&mut self, now: Nanos) {
        if self.busy.is_none() {
            let first = self.queue.dequeue(now);
            self.busy = first.map(|sending| Busy { since: now, bits: bits(&sending.packet), sending });
        }
    }

    fn report_opportunities(&mut self, until: Nanos) {
        while self.queue.is_observed() {
            let bits = u128::from(self.opportunities + 1) * OPPORTUNITY_BYTES as u128 * 8;
            let at = self.start + self.span(bits);
            if at > until {
                break;
            }
            self.queue.could_send(at);
            self.opportunities += 1;
        }
    }
}

fn bits(packet: &Packet) -> u128 {
    packet.ip_length() as u128 * 8
}

impl Element for ConstantRate {
    fn push(&mut self, packet: Packet, now: Nanos) {
        self.advance(now);
        for segment in packet.into_segments() {
            self.queue.enqueue(segment, now);
            self.start_if_idle(now);
        }
    }

    fn pop(&mut self, now: Nanos) -> Option<Departure> {
        self.advance(now);
        self.outbox.pop(now)
    }

    fn next_due(&self) -> Option<Nanos> {
        self.outbox.next_due().or_else(|| self.busy.as_ref().map(|busy| self.end(busy)))
    }

    fn earliest_exit(&self, arrival: Nanos) -> Nanos {
        self.busy.as_ref().map_or(arrival, |busy| arrival.max(self.end(busy)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::{DropTail, Infinite, Limit, Queue};

    fn link(rate_bps: u64, queue: impl Queue + 'static) -> ConstantRate {
        ConstantRate::new(rate_bps, 0, Box::new(queue) as Box<dyn Queue>)
    }

    fn departures(link: &mut ConstantRate, now: Nanos) -> Vec<Nanos> {
        std::iter::from_fn(|| link.pop(now)).map(|departure| departure.at).collect()
    }

    #[test]
    fn a_full_packet_at_0_468_mbit_takes_25_64_ms() {
        let mut link = link(468_000, Infinite::default());
        link.push(Packet::new(&[0; 1500]), 0);
        assert_eq!(link.next_due(), Some(25_641_026));
        assert_eq!(departures(&mut link, 25_641_025), []);
        assert_eq!(departures(&mut link, 25_641_026), [25_641_026]);
    }

    #[test]
    fn a_busy_link_loses_no_time_to_rounding_or_to_late_calls() {
        let mut link = link(3_000_000_000, Infinite::default());
        for _ in 0..3_000_000 {
            link.push(Packet::new(&[0; 20]), 0);
        }
        assert_eq!(departures(&mut link, NANOS_PER_SECOND).last(), Some(&160_000_000));
    }

    #[test]
    fn the_packet_being_sent_does_not_count_against_the_queue() {
        let mut link = link(8_000_000, DropTail::new(Limit::bytes(2000)));
        for _ in 0..4 {
            link.push(Packet::new(&[0; 1000]), 0);
        }
        assert_eq!(departures(&mut link, NANOS_PER_SECOND), [1_000_000, 2_000_000, 3_000_000]);
    }

    #[test]
    fn after_a_rest_the_link_starts_at_once() {
        let mut link = link(8_000_000, Infinite::default());
        link.push(Packet::new(&[0; 1000]), 0);
        link.push(Packet::new(&[0; 1000]), 5_000_000);
        assert_eq!(departures(&mut link, NANOS_PER_SECOND), [1_000_000, 6_000_000]);
    }
}
