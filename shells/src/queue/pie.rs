//! PIE (RFC 8033): drops packets at random, with a probability that keeps the waiting time at a reference.

use super::backlog::Backlog;
use super::{Limit, Parameter, Queue, QueueKind, QueueParts, Waiting};
use crate::error::Result;
use crate::packet::{FULL_PACKET_BYTES, Packet};
use crate::random::Random;
use crate::time::{NANOS_PER_MILLISECOND, NANOS_PER_SECOND, Nanos};

/// The name, the arguments and the constructor.
pub const KIND: QueueKind = QueueKind {
    name: "pie",
    summary: "Drops at random to hold a waiting time (RFC 8033)",
    has_limit: true,
    parameters: &[REFERENCE, BURST, ECN],
    build,
};

const REFERENCE: Parameter = Parameter::milliseconds("qdelay_ref");
const BURST: Parameter = Parameter::milliseconds("max_burst");
const ECN: Parameter = Parameter::flag("ecn");

fn build(parts: QueueParts<'_>) -> Result<Box<dyn Queue>> {
    let default = PieSettings::default();
    let settings = PieSettings {
        reference: parts.arguments.milliseconds(REFERENCE.name)?.unwrap_or(default.reference),
        burst: parts.arguments.milliseconds(BURST.name)?.unwrap_or(default.burst),
        ecn: parts.arguments.flag(ECN.name)?,
    };
    Ok(Box::new(Pie::new(settings, parts.limit.unwrap_or_default(), parts.random)))
}

/// How often the probability is recalculated (`T_UPDATE`).
const UPDATE: Nanos = 15 * NANOS_PER_MILLISECOND;
/// Weights of the deviation from the reference and of its change, per second (`ALPHA`, `BETA`).
const ALPHA: f64 = 0.125;
const BETA: f64 = 1.25;
/// A queue that holds no more than this many bytes never loses a packet (RFC 8033, 4.1).
const TWO_PACKETS: usize = 2 * FULL_PACKET_BYTES;
/// Up to this probability, packets that allow it are marked; beyond, they are dropped (RFC 8033, 5.1).
const MARK_UP_TO: f64 = 0.1;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PieSettings {
    /// The waiting time to keep (`QDELAY_REF`).
    pub reference: Nanos,
    /// How long a burst may last before anything is dropped (`MAX_BURST`).
    pub burst: Nanos,
    /// Mark packets that allow it as "congestion experienced" instead of dropping them.
    pub ecn: bool,
}

impl Default for PieSettings {
    /// RFC 8033, 4.2 and 4.4.
    fn default() -> Self {
        Self { reference: 15 * NANOS_PER_MILLISECOND, burst: 150 * NANOS_PER_MILLISECOND, ecn: false }
    }
}

/// A PIE queue that takes the waiting time from the packets' times of arrival, as RFC 8033, 5.2 allows.
#[derive(Debug)]
pub struct Pie {
    settings: PieSettings,
    backlog: Backlog,
    random: Random,
    probability: f64,
    /// The probability accumulated since the last drop, which spaces drops.
    accumulated: f64,
    burst_left: Nanos,
    delay: Nanos,
    delay_before: Nanos,
    next_update: Option<Nanos>,
}

impl Pie {
    #[must_use]
    pub fn new(settings: PieSettings, limit: Limit, random: Random) -> Self {
        Self {
            settings,
            backlog: Backlog::new(limit),
            random,
            probability: 0.0,
            accumulated: 0.0,
            burst_left: settings.burst,
            delay: 0,
            delay_before: 0,
            next_update: None,
        }
    }

    /// Make the updates that a timer would have made until `now`. Nothing else has changed since the last one.
    fn update_until(&mut self, now: Nanos) {
        let mut at = *self.next_update.get_or_insert(now + UPDATE);
        while at <= now {
            self.update();
            at += UPDATE;
            if self.is_at_rest() {
                // Further updates would change nothing.
                at += (now.saturating_sub(at)).next_multiple_of(UPDATE);
            }
        }
        self.next_update = Some(at);
    }

    fn is_at_rest(&self) -> bool {
        self.probability == 0.0
            && self.delay == 0
            && self.delay_before == 0
            && self.burst_left == self.settings.burst
    }

    /// RFC 8033, 4.2 and 4.4.
    fn update(&mut self) {
        let seconds = |span: Nanos| span as f64 / NANOS_PER_SECOND as f64;
        let (delay, before) = (seconds(self.delay), seconds(self.delay_before));
        let change = ALPHA * (delay - seconds(self.settings.reference)) + BETA * (delay - before);
        let mut change = change / damping(self.probability);
        if self.probability >= 0.1 {
            change = change.min(0.02);
        }
        self.probability += change;
        if self.delay == 0 && self.delay_before == 0 {
            self.probability *= 0.98;
        }
        self.probability = self.probability.clamp(0.0, 1.0);

        let calm = self.settings.reference / 2;
        if self.probability == 0.0 && self.delay < calm && self.delay_before < calm {
            self.burst_left = self.settings.burst;
        } else {
            self.burst_left = self.burst_left.saturating_sub(UPDATE);
        }
        self.delay_before = self.delay;
    }

    /// Whether an arriving packet is dropped or marked although there is room; RFC 8033, 4.1.
    fn drops_early(&mut self) -> bool {
        let calm = self.delay_before < self.settings.reference / 2 && self.probability < 0.2;
        if self.burst_left > 0 || calm || self.backlog.bytes() <= TWO_PACKETS {
            return false;
        }
        if self.probability == 0.0 {
            self.accumulated = 0.0;
        }
        self.accumulated += self.probability;
        if self.accumulated < 0.85 {
            return false;
        }
        let drops = self.accumulated >= 8.5 || self.random.chance(self.probability);
        if drops {
            self.accumulated = 0.0;
        }
        drops
    }
}

/// A small probability changes slowly; RFC 8033, 4.2.
fn damping(probability: f64) -> f64 {
    match probability {
        p if p < 0.000_001 => 2048.0,
        p if p < 0.000_01 => 512.0,
        p if p < 0.000_1 => 128.0,
        p if p < 0.001 => 32.0,
        p if p < 0.01 => 8.0,
        p if p < 0.1 => 2.0,
        _ => 1.0,
    }
}

impl Queue for Pie {
    fn enqueue(&mut self, mut waiting: Waiting, dropped: &mut Vec<Packet>) {
        self.update_until(waiting.arrived);
        let full = !self.backlog.has_room_for(&waiting);
        let marks = self.settings.ecn && self.probability <= MARK_UP_TO;
        if full || (self.drops_early() && !(marks && waiting.packet.mark_congestion())) {
            dropped.push(waiting.packet);
        } else {
            self.backlog.push(waiting);
        }
    }

    fn dequeue(&mut self, now: Nanos, _dropped: &mut Vec<Packet>) -> Option<Waiting> {
        self.update_until(now);
        let waiting = self.backlog.pop()?;
        self.delay = if self.backlog.is_empty() { 0 } else { now - waiting.arrived };
        Some(waiting)
    }

    fn is_empty(&self) -> bool {
        self.backlog.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::waiting;
    use super::*;

    const MS: Nanos = NANOS_PER_MILLISECOND;

    /// Let packets arrive every 10 ms and send one each ms, for some seconds. Returns the waiting times.
    fn waits(arrivals: u64, seconds: u64) -> Vec<Nanos> {
        let mut queue = Pie::new(PieSettings::default(), Limit::default(), Random::from_seed(1));
        let mut dropped = Vec::new();
        let mut due = 0;
        let mut waits = Vec::new();
        for now in (1..=seconds * 1000).map(|millisecond| millisecond * MS) {
            due += arrivals;
            while due >= 10 {
                queue.enqueue(waiting(1500, now), &mut dropped);
                due -= 10;
            }
            waits.extend(queue.dequeue(now, &mut dropped).map(|sent| now - sent.arrived));
        }
        waits
    }

    #[test]
    fn an_overloaded_queue_settles_at_the_reference() {
        let waits = waits(12, 120);
        let last = &waits[waits.len() - 20_000..];
        let mean_ms = last.iter().sum::<Nanos>() as f64 / last.len() as f64 / MS as f64;
        assert!((10.0..20.0).contains(&mean_ms), "{mean_ms}");
    }

    #[test]
    fn a_queue_that_is_not_overloaded_loses_nothing() {
        assert_eq!(waits(9, 10).len(), 9000);
    }

    #[test]
    fn a_long_pause_costs_no_time() {
        let mut queue = Pie::new(PieSettings::default(), Limit::default(), Random::from_seed(1));
        let mut dropped = Vec::new();
        queue.enqueue(waiting(1500, 0), &mut dropped);
        queue.dequeue(1, &mut dropped);
        queue.enqueue(waiting(1500, 1_000_000 * NANOS_PER_SECOND), &mut dropped);
        assert_eq!(dropped, []);
    }
}
