//! Cubic (RFC 9438) for one connection.

use std::time::{Duration, Instant};

use crate::loss_based::{Avoidance, LossBased};

pub type Cubic = LossBased<Curve>;

/// How fast the window grows, in segments/s³ (RFC 9438, section 5).
const C: f64 = 0.4;
/// The growth of Reno's estimated window per round trip, in segments, until it reaches the window before the loss
/// (section 4.3).
const RENO_GROWTH: f64 = 3.0 * (1.0 - Curve::KEPT_SHARE) / (1.0 + Curve::KEPT_SHARE);

/// The state of congestion avoidance since its beginning, in bytes.
#[derive(Clone, Debug, Default)]
pub struct Curve {
    /// The window at which the curve is level, and the time after the loss at which the curve reaches it.
    plateau: f64,
    level_after_s: f64,
    /// The window before the loss, and the window that Reno would have now.
    before: f64,
    reno: f64,
    /// How long the window has been in use since the loss.
    elapsed: Duration,
    /// The time up to which `elapsed` was counted; none while the window is not in use.
    counted_until: Option<Instant>,
    /// The window, with fractions of a byte.
    window: f64,
}

impl Avoidance for Curve {
    /// RFC 9438, section 4.6.
    const KEPT_SHARE: f64 = 0.7;

    fn grow(&mut self, window: u64, segment: u64, now: Instant, bytes: u64, rtt: Duration) -> u64 {
        if self.plateau == 0.0 {
            // Slow start has ended without a loss: the curve begins at its plateau (section 4.10).
            let window = window as f64;
            let before = f64::INFINITY; // there was none
            *self = Self { plateau: window, before, reno: window, window, ..Self::default() };
        }
        let segment = segment as f64;
        self.elapsed += self.counted_until.map_or(Duration::ZERO, |until| now - until);
        self.counted_until = Some(now);
        let acknowledged = bytes as f64 / self.window;
        self.reno += segment * acknowledged * if self.reno < self.before { RENO_GROWTH } else { 1.0 };
        let curve =
            |at: Duration| self.plateau + segment * C * (at.as_secs_f64() - self.level_after_s).powi(3);
        if curve(self.elapsed) < self.reno {
            self.window = self.window.max(self.reno);
        } else {
            let target = curve(self.elapsed + rtt).clamp(self.window, 1.5 * self.window);
            self.window += (target - self.window) * acknowledged;
        }
        self.window as u64
    }

    fn pause(&mut self) {
        // Time during which the window is not in use does not count (section 5.8).
        self.counted_until = None;
    }

    fn begin(&mut self, before: u64, window: u64, segment: u64) {
        let (before, window) = (before as f64, window as f64);
        // Fast convergence: a window that did not reach the previous plateau leaves room for others (section 4.7).
        let plateau = if before < self.plateau { before * (1.0 + Self::KEPT_SHARE) / 2.0 } else { before };
        let level_after_s = ((plateau - window).max(0.0) / segment as f64 / C).cbrt();
        *self = Self { plateau, level_after_s, before, reno: window, window, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss_based::tests::{RTT, Sender};
    use quinn::congestion::Controller;

    #[test]
    fn the_window_grows_back_along_the_curve_of_rfc_9438() {
        let mut sender = Sender::<Curve>::with_segments(200);
        sender.lose();
        let began = sender.now;
        let level_after_s = (200.0 * (1.0 - Curve::KEPT_SHARE) / C).cbrt();
        while (sender.now - began).as_secs_f64() < 1.3 * level_after_s {
            sender.round(RTT);
            // The first round trip does not count.
            let at_s = (sender.now - began - RTT).as_secs_f64();
            let expected = 200.0 + C * (at_s - level_after_s).powi(3);
            let window = sender.segments();
            assert!((window - expected).abs() < 4.0, "{window} instead of {expected} after {at_s} s");
        }
    }

    #[test]
    fn where_slow_start_ended_without_a_loss_the_window_grows_no_faster_than_renos_estimate() {
        let mut sender = Sender::<Curve>::with_segments(10);
        sender.round(RTT);
        sender.round(RTT);
        sender.round(RTT + Duration::from_millis(10));
        let window = sender.segments();
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
    fn a_small_window_grows_at_least_as_renos() {
        let mut sender = Sender::<Curve>::with_segments(10);
        sender.lose();
        for _ in 0..20 {
            sender.round(Duration::from_millis(5));
        }
        // It grows by 3 segments, back to the window before the loss, at 0.53 per round trip, and from there by one per
        // round trip.
        assert!((18.0..28.0).contains(&sender.segments()), "{}", sender.segments());
    }

    #[test]
    fn a_window_that_is_not_in_use_does_not_grow_nor_does_its_clock_run() {
        let mut sender = Sender::<Curve>::with_segments(100);
        sender.lose();
        sender.round(RTT);
        let window = sender.control.window();
        sender.pause();
        sender.now += Duration::from_secs(20);
        sender.round(RTT);
        assert!(sender.control.window() < window * 11 / 10, "{} after {window}", sender.control.window());
    }
}
