//! The common part of Cubic and NewReno: slow start with HyStart, which ends it before the queue overflows, and a
//! single response to all losses of a flight. They differ in how the window grows afterwards (`Avoidance`).
//!
//! quinn's own Cubic and NewReno have a slow start without HyStart, which overfills every queue once. Linux and quiche
//! have HyStart. So a comparison of them with quinn's own controllers would mainly compare slow starts.

use std::any::Any;
use std::cmp::max;
use std::time::{Duration, Instant};

use quinn::congestion::{Controller, ControllerMetrics};
use quinn_proto::RttEstimator;

const MIN_WINDOW_SEGMENTS: u64 = 2;

/// Congestion avoidance. Windows and segments are in bytes.
pub trait Avoidance: Clone + Default + Send + Sync + 'static {
    /// The share of the window that is kept after a loss.
    const KEPT_SHARE: f64;

    /// The next window: the present one, `window`, is in use, and `bytes` of it were acknowledged.
    fn grow(&mut self, window: u64, segment: u64, now: Instant, bytes: u64, rtt: Duration) -> u64;

    /// Called when the window is not in use.
    fn pause(&mut self) {}

    /// Called after a loss, which has reduced the window from `before` to `window`.
    fn begin(&mut self, before: u64, window: u64, segment: u64);
}

#[derive(Clone)]
pub struct LossBased<A> {
    initial_window: u64,
    segment: u64,
    window: u64,
    ssthresh: u64,
    /// Packets sent up to this time no longer affect the window.
    recovery_start: Option<Instant>,
    slow_start: HyStart,
    avoidance: A,
}

impl<A: Avoidance> LossBased<A> {
    pub fn new(initial_window: u64, segment: u16) -> Self {
        Self {
            initial_window,
            segment: segment.into(),
            window: initial_window,
            ssthresh: u64::MAX,
            recovery_start: None,
            slow_start: HyStart::default(),
            avoidance: A::default(),
        }
    }

    fn acknowledged(&mut self, now: Instant, sent: Instant, bytes: u64, in_use: bool, rtt: Duration) {
        if self.is_in_slow_start() {
            self.slow_start.sample(now - sent);
        }
        if self.is_before_recovery(sent) {
            return;
        }
        if !in_use {
            self.avoidance.pause();
        } else if self.is_in_slow_start() {
            self.window += bytes;
        } else {
            self.window = self.avoidance.grow(self.window, self.segment, now, bytes, rtt);
        }
    }

    fn lost(&mut self, now: Instant, sent: Instant, is_persistent: bool) {
        if self.is_before_recovery(sent) {
            return;
        }
        self.recovery_start = Some(now);
        let before = self.window;
        self.window = max((before as f64 * A::KEPT_SHARE) as u64, self.min_window());
        self.ssthresh = self.window;
        self.avoidance.begin(before, self.window, self.segment);
        if is_persistent {
            // Slow start, up to the reduced window (RFC 9002, section 7.6.2).
            self.window = self.min_window();
            self.recovery_start = None;
        }
    }

    fn is_in_slow_start(&self) -> bool {
        self.window < self.ssthresh
    }

    fn is_before_recovery(&self, sent: Instant) -> bool {
        self.recovery_start.is_some_and(|start| sent <= start)
    }

    fn min_window(&self) -> u64 {
        MIN_WINDOW_SEGMENTS * self.segment
    }
}

impl<A: Avoidance> Controller for LossBased<A> {
    fn on_sent(&mut self, _now: Instant, _bytes: u64, last_packet_number: u64) {
        self.slow_start.last_sent = last_packet_number;
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        self.acknowledged(now, sent, bytes, !app_limited, rtt.get());
    }

    fn on_end_acks(&mut self, _now: Instant, _in_flight: u64, _app_limited: bool, largest: Option<u64>) {
        if self.is_in_slow_start() && self.slow_start.ends_at(largest.unwrap_or_default()) {
            self.ssthresh = self.window;
        }
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent: bool, _lost_bytes: u64) {
        self.lost(now, sent, is_persistent);
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

// When round trips count as longer (RFC 9406, section 4.3); the same as in Linux and quiche. As in these, and unlike
// HyStart++, slow start then ends at once.
const LEAST_INCREASE: Duration = Duration::from_millis(4);
const MOST_INCREASE: Duration = Duration::from_millis(16);
const INCREASE_DIVISOR: u32 = 8;
const LEAST_SAMPLES: u32 = 8;

/// Detects whether round trips become longer while the window doubles.
#[derive(Clone, Debug, Default)]
struct HyStart {
    last_sent: u64,
    /// The round ends when a packet after this one was acknowledged.
    round_end: u64,
    samples: u32,
    least: Option<Duration>,
    least_before: Option<Duration>,
}

impl HyStart {
    fn sample(&mut self, rtt: Duration) {
        self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
        self.samples += 1;
    }

    /// Whether slow start ends with the acknowledgement of this packet.
    fn ends_at(&mut self, largest: u64) -> bool {
        let is_longer = match (self.least, self.least_before) {
            (Some(least), Some(before)) if self.samples >= LEAST_SAMPLES => {
                least >= before + (before / INCREASE_DIVISOR).clamp(LEAST_INCREASE, MOST_INCREASE)
            }
            _ => false,
        };
        if largest > self.round_end {
            self.round_end = self.last_sent;
            self.least_before = self.least.take();
            self.samples = 0;
        }
        is_longer
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::cubic::Curve;
    use crate::reno::Line;

    const SEGMENT: u16 = 1250;
    pub const RTT: Duration = Duration::from_millis(60);

    /// A sender whose packets are acknowledged one by one after a round trip, which takes `rtt`.
    pub struct Sender<A> {
        pub control: LossBased<A>,
        pub now: Instant,
        number: u64,
    }

    impl<A: Avoidance> Sender<A> {
        pub fn with_segments(segments: u64) -> Self {
            let control = LossBased::new(segments * u64::from(SEGMENT), SEGMENT);
            Self { control, now: Instant::now(), number: 0 }
        }

        pub fn segments(&self) -> f64 {
            self.control.window() as f64 / f64::from(SEGMENT)
        }

        pub fn round(&mut self, rtt: Duration) {
            let packets = self.control.window() / u64::from(SEGMENT);
            let sent = self.now;
            self.control.on_sent(sent, 0, self.number + packets);
            self.now += rtt;
            for _ in 0..packets {
                self.number += 1;
                self.control.acknowledged(self.now, sent, SEGMENT.into(), true, rtt);
                self.control.on_end_acks(self.now, 0, false, Some(self.number));
            }
        }

        pub fn lose(&mut self) {
            self.control.lost(self.now, self.now, false);
            self.now += Duration::from_millis(1);
        }

        /// Acknowledges a packet at once, while the window is not in use.
        pub fn pause(&mut self) {
            self.control.acknowledged(self.now, self.now, SEGMENT.into(), false, RTT);
        }
    }

    fn of_each(cubic: impl Fn(&mut Sender<Curve>), reno: impl Fn(&mut Sender<Line>)) {
        cubic(&mut Sender::with_segments(10));
        reno(&mut Sender::with_segments(10));
    }

    #[test]
    fn slow_start_doubles_the_window_and_one_loss_or_several_of_a_flight_end_it() {
        fn promise<A: Avoidance>(sender: &mut Sender<A>) {
            sender.round(RTT);
            sender.round(RTT);
            assert!((sender.segments() - 40.0).abs() < 1.0, "{}", sender.segments());
            sender.lose();
            assert!((sender.segments() - A::KEPT_SHARE * 40.0).abs() < 0.1, "{}", sender.segments());
            let window = sender.control.window();
            sender.control.lost(sender.now, sender.now - RTT, false);
            assert_eq!(sender.control.window(), window);
            assert!(!sender.control.is_in_slow_start());
        }
        of_each(promise, promise);
    }

    #[test]
    fn longer_round_trips_end_slow_start_without_a_loss() {
        fn promise<A: Avoidance>(sender: &mut Sender<A>) {
            sender.round(RTT);
            sender.round(RTT);
            sender.round(RTT + Duration::from_millis(10));
            assert!(!sender.control.is_in_slow_start());
            let window = sender.segments();
            // The window doubled in each of two rounds. Slow start ended after the first packets of the third.
            assert!((40.0..60.0).contains(&window), "{window}");
            for _ in 0..10 {
                sender.round(RTT);
            }
            // Without losses, neither grows by more than a segment per round trip.
            assert!(sender.segments() < window + 11.0, "{} after {window}", sender.segments());
        }
        of_each(promise, promise);
    }

    #[test]
    fn a_few_long_round_trips_do_not_end_slow_start() {
        fn promise<A: Avoidance>(sender: &mut Sender<A>) {
            for _ in 0..4 {
                sender.round(RTT);
                // The first packets of the next round took longer, as when acknowledgements wait.
                sender.control.acknowledged(sender.now, sender.now - RTT * 2, SEGMENT.into(), true, RTT);
            }
            assert_eq!(sender.control.ssthresh, u64::MAX);
        }
        of_each(promise, promise);
    }

    #[test]
    fn persistent_congestion_begins_anew_with_the_least_window() {
        fn promise<A: Avoidance>(sender: &mut Sender<A>) {
            let before = sender.control.window();
            sender.control.lost(sender.now, sender.now, true);
            assert_eq!(sender.control.window(), 2 * u64::from(SEGMENT));
            assert_eq!(sender.control.ssthresh, (before as f64 * A::KEPT_SHARE) as u64);
            sender.now += RTT;
            sender.round(RTT);
            assert_eq!(sender.control.window(), 4 * u64::from(SEGMENT));
        }
        of_each(promise, promise);
    }
}
