//! NewReno (RFC 9002, section 7).

use std::time::{Duration, Instant};

use crate::loss_based::{Avoidance, LossBased};

pub type Reno = LossBased<Line>;

/// Congestion avoidance: the window grows by one segment for each window that is acknowledged.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// The bytes acknowledged since the window last grew.
    acknowledged: u64,
}

impl Avoidance for Line {
    const KEPT_SHARE: f64 = 0.5;

    fn grow(&mut self, window: u64, segment: u64, _now: Instant, bytes: u64, _rtt: Duration) -> u64 {
        self.acknowledged += bytes;
        if self.acknowledged < window {
            return window;
        }
        self.acknowledged -= window;
        window + segment
    }

    fn begin(&mut self, _before: u64, _window: u64, _segment: u64) {
        self.acknowledged = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::loss_based::tests::{RTT, Sender};
    use quinn::congestion::Controller;

    #[test]
    fn after_a_loss_half_is_kept_and_grows_by_a_segment_in_each_round_trip() {
        let mut sender = Sender::<Line>::with_segments(40);
        sender.lose();
        assert_eq!(sender.segments(), 20.0);
        for rounds in 1..=10 {
            sender.round(RTT);
            assert_eq!(sender.segments(), 20.0 + f64::from(rounds));
        }
    }

    #[test]
    fn a_window_that_is_not_in_use_does_not_grow() {
        let mut sender = Sender::<Line>::with_segments(10);
        sender.lose();
        let window = sender.control.window();
        for _ in 0..100 {
            sender.pause();
        }
        assert_eq!(sender.control.window(), window);
    }
}
