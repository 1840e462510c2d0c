//! CoDel (RFC 8289): drops packets when the waiting time has been too long for too long.

use super::backlog::Backlog;
use super::{Limit, Parameter, Queue, QueueArguments, QueueKind, Waiting};
use crate::error::Result;
use crate::packet::{FULL_PACKET_BYTES, Packet};
use crate::time::{NANOS_PER_MILLISECOND, Nanos};

/// The name, the arguments and the constructor.
pub const KIND: QueueKind = QueueKind {
    name: "codel",
    summary: "Drops when packets wait too long for too long (RFC 8289)",
    has_limit: true,
    parameters: &[TARGET, INTERVAL, ECN],
    build: |parts| {
        Ok(Box::new(CoDel::new(
            CoDelSettings::from_arguments(parts.arguments)?,
            parts.limit.unwrap_or_default(),
        )))
    },
};

/// The arguments of CoDel, which FQ-CoDel has as well.
pub(super) const TARGET: Parameter = Parameter::milliseconds("target");
pub(super) const INTERVAL: Parameter = Parameter::milliseconds("interval");
pub(super) const ECN: Parameter = Parameter::flag("ecn");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDelSettings {
    /// The waiting time that a good queue does not exceed for long.
    pub target: Nanos,
    /// How long the waiting time may exceed the target: a worst-case round-trip time.
    pub interval: Nanos,
    /// Mark packets that allow it as "congestion experienced" instead of dropping them (RFC 3168).
    pub ecn: bool,
}

impl Default for CoDelSettings {
    /// RFC 8289, 4.2 and 4.3.
    fn default() -> Self {
        Self { target: 5 * NANOS_PER_MILLISECOND, interval: 100 * NANOS_PER_MILLISECOND, ecn: false }
    }
}

impl CoDelSettings {
    pub(super) fn from_arguments(arguments: &QueueArguments) -> Result<Self> {
        let default = Self::default();
        Ok(Self {
            target: arguments.milliseconds(TARGET.name)?.unwrap_or(default.target),
            interval: arguments.milliseconds(INTERVAL.name)?.unwrap_or(default.interval),
            ecn: arguments.flag(ECN.name)?,
        })
    }
}

/// One CoDel queue. It also drops a packet that arrives when it is full.
#[derive(Debug)]
pub struct CoDel {
    backlog: Backlog,
    law: Law,
}

impl CoDel {
    #[must_use]
    pub fn new(settings: CoDelSettings, limit: Limit) -> Self {
        Self { backlog: Backlog::new(limit), law: Law::new(settings) }
    }
}

impl Queue for CoDel {
    fn enqueue(&mut self, waiting: Waiting, dropped: &mut Vec<Packet>) {
        if self.backlog.has_room_for(&waiting) {
            self.backlog.push(waiting);
        } else {
            dropped.push(waiting.packet);
        }
    }

    fn dequeue(&mut self, now: Nanos, dropped: &mut Vec<Packet>) -> Option<Waiting> {
        self.law.dequeue(&mut self.backlog, now, dropped)
    }

    fn is_empty(&self) -> bool {
        self.backlog.is_empty()
    }
}

/// CoDel's decisions on one backlog; names and steps as in RFC 8289, 5.
#[derive(Debug)]
pub(super) struct Law {
    settings: CoDelSettings,
    /// When the waiting time will have been above target for an interval.
    first_above: Option<Nanos>,
    dropping: bool,
    drop_next: Nanos,
    /// The number of drops in this dropping state, and its value when the state was entered.
    count: u32,
    last_count: u32,
}

impl Law {
    pub fn new(settings: CoDelSettings) -> Self {
        Self { settings, first_above: None, dropping: false, drop_next: 0, count: 0, last_count: 0 }
    }

    /// The packet of the backlog to send at `now`.
    pub fn dequeue(
        &mut self,
        backlog: &mut Backlog,
        now: Nanos,
        dropped: &mut Vec<Packet>,
    ) -> Option<Waiting> {
        let (mut waiting, may_drop) = self.take(backlog, now)?;
        if self.dropping {
            self.dropping = may_drop;
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                if self.settings.ecn && waiting.packet.mark_congestion() {
                    self.drop_next = self.control_law(self.drop_next);
                    break;
                }
                dropped.push(waiting.packet);
                (waiting, self.dropping) = self.take(backlog, now)?;
                if self.dropping {
                    self.drop_next = self.control_law(self.drop_next);
                }
            }
        } else if may_drop {
            if !(self.settings.ecn && waiting.packet.mark_congestion()) {
                dropped.push(waiting.packet);
                (waiting, _) = self.take(backlog, now)?;
            }
            self.enter_dropping(now);
        }
        Some(waiting)
    }

    /// Take out the next packet; also returns whether it may be dropped.
    fn take(&mut self, backlog: &mut Backlog, now: Nanos) -> Option<(Waiting, bool)> {
        let Some(waiting) = backlog.pop() else {
            self.first_above = None;
            self.dropping = false;
            return None;
        };
        // A queue that holds no more than one packet never loses it (RFC 8289, 4.4).
        if now - waiting.arrived < self.settings.target || backlog.bytes() <= FULL_PACKET_BYTES {
            self.first_above = None;
            return Some((waiting, false));
        }
        let first_above = *self.first_above.get_or_insert(now + self.settings.interval);
        Some((waiting, now >= first_above))
    }

    fn enter_dropping(&mut self, now: Nanos) {
        self.dropping = true;
        // Soon after the last dropping state, start from the rate that controlled the queue then.
        let recent = now.saturating_sub(self.drop_next) < 16 * self.settings.interval;
        let drops = self.count.saturating_sub(self.last_count);
        self.count = if drops > 1 && recent { drops } else { 1 };
        self.drop_next = self.control_law(now);
        self.last_count = self.count;
    }

    fn control_law(&self, from: Nanos) -> Nanos {
        from + (self.settings.interval as f64 / f64::from(self.count).sqrt()) as Nanos
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::waiting;
    use super::*;

    const MS: Nanos = NANOS_PER_MILLISECOND;

    /// After a burst of packets, send one and let one arrive each ms. Returns the times of the drops.
    fn drop_times(burst: usize, milliseconds: u64) -> Vec<Nanos> {
        let mut queue = CoDel::new(CoDelSettings::default(), Limit::default());
        let mut dropped = Vec::new();
        let mut times = Vec::new();
        for _ in 0..burst {
            queue.enqueue(waiting(1500, 0), &mut dropped);
        }
        for now in 1..=milliseconds {
            queue.enqueue(waiting(1500, now * MS), &mut dropped);
            let sent = queue.dequeue(now * MS, &mut dropped);
            assert!(sent.is_some());
            times.extend(dropped.drain(..).map(|_| now));
        }
        times
    }

    #[test]
    fn a_short_queue_loses_nothing() {
        assert_eq!(drop_times(4, 2000), []);
    }

    #[test]
    fn a_standing_queue_is_dropped_from_after_an_interval_and_ever_faster() {
        let times = drop_times(30, 1000);
        // The waiting time exceeds the target from 5 ms on. After the first drop, the intervals are 100/√1, 100/√2, …
        // ms.
        assert_eq!(&times[..4], [105, 205, 276, 334]);
        // At first 30 packets wait; each drop removes one, so the queue ends near the target.
        assert!((23..=27).contains(&times.len()), "{times:?}");
    }

    #[test]
    fn what_exceeds_the_limit_is_dropped_at_once() {
        let mut queue = CoDel::new(CoDelSettings::default(), Limit::packets(1));
        let mut dropped = Vec::new();
        queue.enqueue(waiting(10, 0), &mut dropped);
        queue.enqueue(waiting(20, 0), &mut dropped);
        assert_eq!(dropped.len(), 1);
    }
}
