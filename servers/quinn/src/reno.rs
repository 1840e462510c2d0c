//! NewReno (RFC 9002, section 7), with HyStart, as Cubic beside it: quinn's own has none, and overfills every queue once.

use std::any::Any;
use std::cmp::max;
use std::time::Instant;

use quinn::congestion::{Controller, ControllerMetrics};
use quinn_proto::RttEstimator;

use crate::cubic::{HyStart, MIN_WINDOW_SEGMENTS};

#[derive(Clone, Debug)]
pub struct Reno {
    initial_window: u64,
    segment: u64,
    window: u64,
    ssthresh: u64,
    /// Packets that were sent until then say nothing of the window any more.
    recovery_start: Option<Instant>,
    slow_start: HyStart,
    /// What was acknowledged of a window since it grew by a segment, in bytes.
    acknowledged: u64,
}

impl Reno {
    pub fn new(initial_window: u64, segment: u16) -> Self {
        Self {
            initial_window,
            segment: segment.into(),
            window: initial_window,
            ssthresh: u64::MAX,
            recovery_start: None,
            slow_start: HyStart::default(),
            acknowledged: 0,
        }
    }

    fn min_window(&self) -> u64 {
        MIN_WINDOW_SEGMENTS * self.segment
    }
}

impl Controller for Reno {
    fn on_sent(&mut self, _now: Instant, _bytes: u64, last_packet_number: u64) {
        self.slow_start.last_sent = last_packet_number;
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, _rtt: &RttEstimator) {
        let in_slow_start = self.window < self.ssthresh;
        if in_slow_start {
            self.slow_start.sample(now - sent);
        }
        if app_limited || self.recovery_start.is_some_and(|start| sent <= start) {
            return;
        }
        if in_slow_start {
            self.window += bytes;
            return;
        }
        self.acknowledged += bytes;
        if self.acknowledged >= self.window {
            self.acknowledged -= self.window;
            self.window += self.segment;
        }
    }

    fn on_end_acks(&mut self, _now: Instant, _in_flight: u64, _app_limited: bool, largest: Option<u64>) {
        if self.window < self.ssthresh && self.slow_start.ends_at(largest.unwrap_or_default()) {
            self.ssthresh = self.window;
        }
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent: bool, _lost_bytes: u64) {
        if self.recovery_start.is_some_and(|start| sent <= start) {
            return;
        }
        self.recovery_start = Some(now);
        self.window = max(self.window / 2, self.min_window());
        self.ssthresh = self.window;
        self.acknowledged = 0;
        if is_persistent {
            self.window = self.min_window();
            self.recovery_start = None;
        }
    }

    fn on_mtu_update(&mut self, segment: u16) {
        self.segment = segment.into();
        self.window = max(self.window, self.min_window());
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window;
        metrics.ssthresh = Some(self.ssthresh);
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.initial_window
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
