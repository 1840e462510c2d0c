//! A link whose delivery opportunities come from a trace, with the same meaning as in Mahimahi.

use std::sync::Arc;

use super::{Departure, Element, ObservedQueue, Outbox};
use crate::packet::{Packet, TUN_HEADER_BYTES};
use crate::queue::Waiting;
use crate::time::Nanos;
use crate::trace::{OPPORTUNITY_BYTES, Rounds, Trace};

/// Sends [`OPPORTUNITY_BYTES`] at each opportunity of a trace. A packet leaves the link when its last byte has been
/// sent. When the queue becomes empty, the rest of an opportunity is lost.
///
/// A packet counts with its IP length and [`TUN_HEADER_BYTES`]. It leaves the queue when its first byte is sent, so the
/// queue's limit does not count a packet that is partly sent.
pub struct TraceRate {
    trace: Arc<Trace>,
    rounds: Rounds,
    /// When the trace began.
    start: Nanos,
    /// The first unused opportunity.
    next: u64,
    queue: ObservedQueue,
    /// A packet that is partly sent, and its bytes still to send.
    sending: Option<(Waiting, usize)>,
    outbox: Outbox,
}

impl TraceRate {
    #[must_use]
    pub fn new(trace: Arc<Trace>, rounds: Rounds, start: Nanos, queue: impl Into<ObservedQueue>) -> Self {
        Self { trace, rounds, start, next: 0, queue: queue.into(), sending: None, outbox: Outbox::default() }
    }

    /// The next opportunity; `None` after the end of a trace that does not repeat.
    fn next_opportunity(&self) -> Option<Nanos> {
        let over = self.rounds == Rounds::Once && self.next >= self.trace.lines();
        (!over).then(|| self.start + self.trace.opportunity(self.next))
    }

    fn is_idle(&self) -> bool {
        self.sending.is_none() && self.queue.is_empty()
    }

    /// Bring the link up to `now`: use every opportunity until then.
    fn advance(&mut self, now: Nanos) {
        if self.is_idle() && !self.queue.is_observed() {
            self.next = self.next.max(self.trace.first_after(now.saturating_sub(self.start)));
        }
        while let Some(at) = self.next_opportunity().filter(|at| *at <= now) {
            self.next += 1;
            self.queue.could_send(at);
            self.use_opportunity(at);
        }
    }

    fn use_opportunity(&mut self, at: Nanos) {
        let mut bytes = OPPORTUNITY_BYTES;
        while bytes > 0 {
            let partly_sent = self.sending.take();
            let next = partly_sent.or_else(|| {
                self.queue.dequeue(at).map(|waiting| {
                    let size = waiting.packet.ip_length() + TUN_HEADER_BYTES;
                    (waiting, size)
                })
            });
            let Some((waiting, size)) = next else { return };
            if size > bytes {
                self.sending = Some((waiting, size - bytes));
                return;
            }
            bytes -= size;
            self.queue.departed(&waiting, at);
            self.outbox.push(waiting.packet, at);
        }
    }
}

impl Element for TraceRate {
    fn push(&mut self, packet: Packet, now: Nanos) {
        self.advance(now);
        for segment in packet.into_segments() {
            self.queue.enqueue(segment, now);
        }
    }

    fn pop(&mut self, now: Nanos) -> Option<Departure> {
        self.advance(now);
        self.outbox.pop(now)
    }

    fn next_due(&self) -> Option<Nanos> {
        let next_opportunity = || if self.is_idle() { None } else { self.next_opportunity() };
        self.outbox.next_due().or_else(next_opportunity)
    }

    fn earliest_exit(&self, arrival: Nanos) -> Nanos {
        self.next_opportunity().map_or(arrival, |next| arrival.max(next))
    }

    fn end(&self) -> Option<Nanos> {
        (self.rounds == Rounds::Once).then(|| self.start + self.trace.period())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::{Infinite, Queue};
    use crate::time::NANOS_PER_MILLISECOND;

    fn link(trace: &str, rounds: Rounds) -> TraceRate {
        let queue: Box<dyn Queue> = Box::new(Infinite::default());
        TraceRate::new(Arc::new(Trace::parse(trace, "test").unwrap()), rounds, 0, queue)
    }

    fn departures_ms(link: &mut TraceRate, now_ms: Nanos) -> Vec<Nanos> {
        let now = now_ms * NANOS_PER_MILLISECOND;
        std::iter::from_fn(|| link.pop(now)).map(|departure| departure.at / NANOS_PER_MILLISECOND).collect()
    }

    #[test]
    fn an_opportunity_takes_one_full_packet() {
        let mut link = link("2\n5\n5\n", Rounds::Forever);
        for _ in 0..4 {
            link.push(Packet::new(&[0; 1500]), 0);
        }
        assert_eq!(departures_ms(&mut link, 7), [2, 5, 5, 7]);
        assert_eq!(link.next_due(), None);
    }

    #[test]
    fn small_packets_share_an_opportunity_and_large_ones_spread_over_several() {
        let mut link = link("1", Rounds::Forever);
        for length in [748, 748, 1000, 1000, 1000] {
            link.push(Packet::new(&vec![0; length]), 0);
        }
        assert_eq!(departures_ms(&mut link, 9), [1, 1, 2, 3, 4]);
    }

    #[test]
    fn unused_opportunities_are_gone() {
        let mut link = link("1\n1\n1\n10", Rounds::Forever);
        link.push(Packet::new(&[0; 1500]), NANOS_PER_MILLISECOND);
        assert_eq!(link.next_due(), Some(10 * NANOS_PER_MILLISECOND));
        link.push(Packet::new(&[0; 1500]), 10 * NANOS_PER_MILLISECOND);
        assert_eq!(departures_ms(&mut link, 30), [10, 11]);
    }

    #[test]
    fn a_trace_that_plays_once_ends() {
        let mut link = link("1\n3", Rounds::Once);
        for _ in 0..3 {
            link.push(Packet::new(&[0; 1500]), 0);
        }
        assert_eq!(departures_ms(&mut link, 99), [1, 3]);
        assert_eq!(link.next_due(), None);
        assert_eq!(link.end(), Some(3 * NANOS_PER_MILLISECOND));
    }
}
