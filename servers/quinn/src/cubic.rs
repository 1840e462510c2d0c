//! Cubic (RFC 9438) for one connection, with HyStart, which ends slow start before the queue overflows.
//!
//! quinn has a Cubic, too, which begins no less than any slow start without that: it overfills every queue once. Linux's
//! and quiche's do not, so a comparison with them would be one of slow starts.

use std::any::Any;
use std::cmp::max;
use std::time::{Duration, Instant};

use quinn::congestion::{Controller, ControllerMetrics};
use quinn_proto::RttEstimator;

/// The share of the window that is kept after a loss, and how fast the window grows, in segments/s³ (RFC 9438,
/// section 5).
const BETA: f64 = 0.7;
const C: f64 = 0.4;
/// What an estimate of Reno grows by in a round trip, in segments, until it is where the loss was (section 4.3).
const RENO_GROWTH: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);
pub const MIN_WINDOW_SEGMENTS: u64 = 2;

#[derive(Clone, Debug)]
pub struct Cubic {
    initial_window: u64,
    segment: u64,
    window: u64,
    ssthresh: u64,
    /// Packets that were sent until then say nothing of the window any more.
    recovery_start: Option<Instant>,
    slow_start: HyStart,
    growth: Growth,
}

/// Congestion avoidance since it began, in bytes.
#[derive(Clone, Debug, Default)]
struct Growth {
    /// Where the window is to be level, and after what time it is.
    plateau: f64,
    level_after_s: f64,
    /// The window before the loss, and what Reno's would be now.
    before: f64,
    reno: f64,
    /// How long the window has been in use since, until when it was counted, and the window as a fraction knows it.
    elapsed: Duration,
    counted_until: Option<Instant>,
    window: f64,
}

impl Cubic {
    pub fn new(initial_window: u64, segment: u16) -> Self {
        Self {
            initial_window,
            segment: segment.into(),
            window: initial_window,
            ssthresh: u64::MAX,
            recovery_start: None,
            slow_start: HyStart::default(),
            growth: Growth::default(),
        }
    }

    fn acknowledged(&mut self, now: Instant, sent: Instant, bytes: u64, in_use: bool, rtt: Duration) {
        let in_slow_start = self.window < self.ssthresh;
        if in_slow_start {
            self.slow_start.sample(now - sent);
        }
        if self.recovery_start.is_some_and(|start| sent <= start) {
            return;
        }
        if !in_use {
            // Time in which the window was not in use does not count (RFC 9438, section 5.8).
            self.growth.counted_until = None;
        } else if in_slow_start {
            self.window += bytes;
        } else {
            self.grow(now, bytes, rtt);
        }
    }

    fn grow(&mut self, now: Instant, bytes: u64, rtt: Duration) {
        if self.growth.plateau == 0.0 {
            // Slow start has ended without a loss: the curve begins at its plateau (section 4.10).
            let window = self.window as f64;
            let before = f64::INFINITY; // there was none
            self.growth = Growth { plateau: window, before, reno: window, window, ..Growth::default() };
        }
        let segment = self.segment as f64;
        let growth = &mut self.growth;
        growth.elapsed += growth.counted_until.map_or(Duration::ZERO, |until| now - until);
        growth.counted_until = Some(now);
        let acknowledged = bytes as f64 / growth.window;
        growth.reno += segment * acknowledged * if growth.reno < growth.before { RENO_GROWTH } else { 1.0 };
        let curve =
            |at: Duration| growth.plateau + segment * C * (at.as_secs_f64() - growth.level_after_s).powi(3);
        if curve(growth.elapsed) < growth.reno {
            growth.window = growth.window.max(growth.reno);
        } else {
            let target = curve(growth.elapsed + rtt).clamp(growth.window, 1.5 * growth.window);
            growth.window += (target - growth.window) * acknowledged;
        }
        self.window = growth.window as u64;
    }

    fn lost(&mut self, now: Instant, sent: Instant, is_persistent: bool) {
        if self.recovery_start.is_some_and(|start| sent <= start) {
            return;
        }
        self.recovery_start = Some(now);
        let before = self.window as f64;
        // Fast convergence: a window that was not as large again leaves room to others (section 4.7).
        let plateau = if before < self.growth.plateau { before * (1.0 + BETA) / 2.0 } else { before };
        self.window = max((before * BETA) as u64, self.min_window());
        self.ssthresh = self.window;
        let window = self.window as f64;
        let level_after_s = ((plateau - window).max(0.0) / self.segment as f64 / C).cbrt();
        self.growth = Growth { plateau, level_after_s, before, reno: window, window, ..Growth::default() };
        if is_persistent {
            // Slow start, up to where it was cut (RFC 9002, section 7.6.2).
            self.window = self.min_window();
            self.recovery_start = None;
        }
    }

    fn min_window(&self) -> u64 {
        MIN_WINDOW_SEGMENTS * self.segment
    }
}

impl Controller for Cubic {
    fn on_sent(&mut self, _now: Instant, _bytes: u64, last_packet_number: u64) {
        self.slow_start.last_sent = last_packet_number;
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        self.acknowledged(now, sent, bytes, !app_limited, rtt.get());
    }

    fn on_end_acks(&mut self, _now: Instant, _in_flight: u64, _app_limited: bool, largest: Option<u64>) {
        if self.window < self.ssthresh && self.slow_start.ends_at(largest.unwrap_or_default()) {
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

// When round trips count as longer (RFC 9406, section 4.3), as Linux and quiche have it, too. Like these, and unlike
// HyStart++, slow start ends at once then.
const LEAST_INCREASE: Duration = Duration::from_millis(4);
const MOST_INCREASE: Duration = Duration::from_millis(16);
const INCREASE_DIVISOR: u32 = 8;
const LEAST_SAMPLES: u32 = 8;

/// Whether round trips become longer while the window doubles.
#[derive(Clone, Debug, Default)]
pub struct HyStart {
    pub last_sent: u64,
    /// The round ends when a packet after this one was acknowledged.
    round_end: u64,
    samples: u32,
    least: Option<Duration>,
    least_before: Option<Duration>,
}

impl HyStart {
    pub fn sample(&mut self, rtt: Duration) {
        self.least = Some(self.least.map_or(rtt, |least| least.min(rtt)));
        self.samples += 1;
    }

    /// Whether slow start is over when this packet was acknowledged.
    pub fn ends_at(&mut self, largest: u64) -> bool {
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
mod tests {
    use super::*;

    const SEGMENT: u16 = 1250;
    const RTT: Duration = Duration::from_millis(60);

    /// A sender whose packets are acknowledged one by one a round trip later; each round trip takes `rtt`.
    struct Sender {
        cubic: Cubic,
        now: Instant,
        number: u64,
    }

    impl Sender {
        fn new(segments: u64) -> Self {
            Self { cubic: Cubic::new(segments * u64::from(SEGMENT), SEGMENT), now: Instant::now(), number: 0 }
        }

        fn segments(&self) -> f64 {
            self.cubic.window() as f64 / f64::from(SEGMENT)
        }

        fn round(&mut self, rtt: Duration) {
            let packets = self.cubic.window() / u64::from(SEGMENT);
            let sent = self.now;
            self.cubic.on_sent(sent, 0, self.number + packets);
            self.now += rtt;
            for _ in 0..packets {
                self.number += 1;
                self.cubic.acknowledged(self.now, sent, SEGMENT.into(), true, rtt);
                self.cubic.on_end_acks(self.now, 0, false, Some(self.number));
            }
        }

        fn lose(&mut self) {
            self.cubic.lost(self.now, self.now, false);
            self.now += Duration::from_millis(1);
        }
    }

    #[test]
    fn slow_start_doubles_the_window_and_a_loss_ends_it_with_seven_tenths() {
        let mut sender = Sender::new(32);
        sender.round(RTT);
        sender.round(RTT);
        assert!((sender.segments() - 128.0).abs() < 1.0, "{}", sender.segments());
        sender.lose();
        assert!((sender.segments() - 0.7 * 128.0).abs() < 0.1, "{}", sender.segments());
        // Of the same flight: one answer.
        let window = sender.cubic.window();
        sender.cubic.lost(sender.now, sender.now - RTT, false);
        assert_eq!(sender.cubic.window(), window);
    }

    #[test]
    fn longer_round_trips_end_slow_start_without_a_loss() {
        let mut sender = Sender::new(10);
        sender.round(RTT);
        sender.round(RTT);
        sender.round(RTT + Duration::from_millis(10));
        assert!(sender.cubic.ssthresh <= sender.cubic.window, "still in slow start");
        let window = sender.segments();
        // Twice in each of two rounds; of the third, only the first packets were needed.
        assert!((40.0..60.0).contains(&window), "{window}");
        for _ in 0..10 {
            sender.round(RTT);
        }
        assert!(
            sender.segments() < window + 10.0 * RENO_GROWTH + 1.0,
            "{} after {window}",
            sender.segments()
        );
    }

    #[test]
    fn a_few_long_round_trips_do_not_end_slow_start() {
        let mut sender = Sender::new(10);
        for _ in 0..4 {
            sender.round(RTT);
            // Of the next round, the first packets took longer, as where acknowledgements wait.
            sender.cubic.acknowledged(sender.now, sender.now - RTT * 2, SEGMENT.into(), true, RTT);
        }
        assert_eq!(sender.cubic.ssthresh, u64::MAX);
    }

    #[test]
    fn the_window_grows_back_along_the_curve_of_rfc_9438() {
        let mut sender = Sender::new(200);
        sender.lose();
        let began = sender.now;
        let level_after_s = (200.0 * (1.0 - BETA) / C).cbrt();
        while (sender.now - began).as_secs_f64() < 1.3 * level_after_s {
            sender.round(RTT);
            // The first round trip is not counted.
            let at_s = (sender.now - began - RTT).as_secs_f64();
            let expected = 200.0 + C * (at_s - level_after_s).powi(3);
            let window = sender.segments();
            assert!((window - expected).abs() < 4.0, "{window} instead of {expected} after {at_s} s");
        }
    }

    #[test]
    fn a_small_window_grows_at_least_as_renos() {
        let mut sender = Sender::new(10);
        sender.lose();
        for _ in 0..20 {
            sender.round(Duration::from_millis(5));
        }
        // 3 segments below the window of the loss at 0.53 a round trip, and one a round trip from there on.
        assert!((18.0..28.0).contains(&sender.segments()), "{}", sender.segments());
    }

    #[test]
    fn a_window_that_is_not_in_use_does_not_grow_nor_does_its_clock_run() {
        let mut sender = Sender::new(100);
        sender.lose();
        sender.round(RTT);
        let window = sender.cubic.window();
        sender.cubic.acknowledged(sender.now, sender.now, SEGMENT.into(), false, RTT);
        sender.now += Duration::from_secs(20);
        sender.round(RTT);
        assert!(sender.cubic.window() < window * 11 / 10, "{} after {window}", sender.cubic.window());
    }

    #[test]
    fn persistent_congestion_begins_anew_with_the_least_window() {
        let mut sender = Sender::new(100);
        sender.cubic.lost(sender.now, sender.now, true);
        assert_eq!(sender.cubic.window(), 2 * u64::from(SEGMENT));
        assert_eq!(sender.cubic.ssthresh, 70 * u64::from(SEGMENT));
    }
}
