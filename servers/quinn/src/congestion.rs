//! The congestion controls, and the log of a connection's congestion control over time.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use clap::ValueEnum;
use quinn::congestion::{Controller, ControllerFactory, ControllerMetrics};
use quinn_proto::RttEstimator;

use crate::connection_log::{ConnectionLog, Metrics};
use crate::cubic::Cubic;
use crate::reno::Reno;

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum CongestionControl {
    /// RFC 9438, with HyStart; keeps 0.7 of its window after a loss
    Cubic,
    /// RFC 9002, with HyStart; keeps half of its window
    Reno,
}

/// Makes the controller of a connection; it writes to `log`, if given.
pub struct Factory {
    pub control: CongestionControl,
    pub initial_window: u64,
    pub log: Option<Arc<ConnectionLog>>,
}

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, _now: Instant, mtu: u16) -> Box<dyn Controller> {
        let controller: Box<dyn Controller> = match self.control {
            CongestionControl::Cubic => Box::new(Cubic::new(self.initial_window, mtu)),
            CongestionControl::Reno => Box::new(Reno::new(self.initial_window, mtu)),
        };
        match &self.log {
            Some(log) => {
                Box::new(Observed { controller, log: log.clone(), in_flight: 0, recovery_start: None })
            }
            None => controller,
        }
    }
}

/// The name of `controller` in protocols.toml, read from the controller itself, not from the settings.
pub fn name_of(controller: &dyn Controller) -> &'static str {
    let own = controller.clone_box().into_any();
    if let Some(observed) = own.downcast_ref::<Observed>() {
        return name_of(observed.controller.as_ref());
    }
    match () {
        () if own.is::<Cubic>() => "cubic",
        () if own.is::<Reno>() => "reno",
        () => "unknown",
    }
}

/// A controller that logs its state at each event of the connection.
struct Observed {
    controller: Box<dyn Controller>,
    log: Arc<ConnectionLog>,
    in_flight: u64,
    recovery_start: Option<Instant>,
}

impl Observed {
    /// The controller's state, by its name in `studies/states`.
    fn state(&self, app_limited: bool) -> &'static str {
        let metrics = self.controller.metrics();
        match metrics.ssthresh {
            _ if self.recovery_start.is_some() => "recovery",
            _ if app_limited => "application_limited",
            Some(ssthresh) if metrics.congestion_window >= ssthresh => "congestion_avoidance",
            _ => "slow_start",
        }
    }

    fn write(&self, now: Instant, rtt: Option<&RttEstimator>, delivered: u64) {
        let metrics = self.controller.metrics();
        self.log.add_metrics(
            now,
            &Metrics {
                window: metrics.congestion_window,
                ssthresh: metrics.ssthresh.filter(|ssthresh| *ssthresh < u64::MAX),
                pacing_bps: metrics.pacing_rate,
                in_flight: self.in_flight,
                smoothed_rtt: rtt.map(RttEstimator::get),
                min_rtt: rtt.map(RttEstimator::min),
                delivered,
            },
        );
    }
}

impl Controller for Observed {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.controller.on_sent(now, bytes, last_packet_number);
        self.in_flight += bytes;
        self.write(now, None, 0);
        // A packet that is the only one in flight, or that fills the window, shows that the application had data to
        // send, so it no longer limits the connection.
        if self.in_flight == bytes || self.in_flight + bytes > self.controller.window() {
            self.log.add_state(now, self.state(false));
        }
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        self.controller.on_ack(now, sent, bytes, app_limited, rtt);
        self.in_flight = self.in_flight.saturating_sub(bytes);
        if self.recovery_start.is_some_and(|start| sent > start) {
            self.recovery_start = None;
        }
        self.write(now, Some(rtt), bytes);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest: Option<u64>) {
        self.controller.on_end_acks(now, in_flight, app_limited, largest);
        self.in_flight = in_flight;
        self.write(now, None, 0);
        self.log.add_state(now, self.state(app_limited));
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent: bool, lost_bytes: u64) {
        self.controller.on_congestion_event(now, sent, is_persistent, lost_bytes);
        self.in_flight = self.in_flight.saturating_sub(lost_bytes);
        if self.recovery_start.is_none() {
            self.recovery_start = Some(now);
        }
        self.write(now, None, 0);
        self.log.add_state(now, self.state(false));
        self.log.note_losses();
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.controller.on_mtu_update(mtu);
    }

    fn window(&self) -> u64 {
        self.controller.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.controller.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self {
            controller: self.controller.clone_box(),
            log: self.log.clone(),
            in_flight: self.in_flight,
            recovery_start: self.recovery_start,
        })
    }

    fn initial_window(&self) -> u64 {
        self.controller.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_controller_has_its_name_and_the_window_that_was_asked_for() {
        for (control, name) in [(CongestionControl::Cubic, "cubic"), (CongestionControl::Reno, "reno")] {
            let factory = Arc::new(Factory { control, initial_window: 46_720, log: None });
            let controller = factory.build(Instant::now(), 1250);
            assert_eq!(name_of(controller.as_ref()), name);
            assert_eq!((controller.initial_window(), controller.window()), (46_720, 46_720));
        }
    }
}
