//! A link that is on and off in turn.

use clap::{Args, ValueEnum};

use super::{Departure, Duplex, Element, Impairment, LossObservers, NetworkContext, Outbox};
use crate::error::{Error, Result};
use crate::packet::Packet;
use crate::random::Random;
use crate::time::Nanos;
use crate::units::parse_seconds;

/// How long a link is on and off in turn. It begins on.
#[derive(Debug)]
pub enum Schedule {
    /// The same times again and again (Mahimahi's mm-intermittent).
    Periodic,
    /// Random times from exponential distributions with these means (Mahimahi's mm-onoff).
    Random(Random),
}

/// Loses the packets that arrive while it is off.
pub struct OnOff {
    on: Nanos,
    off: Nanos,
    schedule: Schedule,
    is_on: bool,
    next_switch: Nanos,
    observers: LossObservers,
    outbox: Outbox,
}

impl OnOff {
    /// A link that begins at `start`.
    ///
    /// # Panics
    /// When both times are 0.
    #[must_use]
    pub fn new(on: Nanos, off: Nanos, schedule: Schedule, start: Nanos) -> Self {
        assert!(on + off > 0, "a link that is neither on nor off");
        let (observers, outbox) = (LossObservers::default(), Outbox::default());
        Self { on, off, schedule, is_on: false, next_switch: start, observers, outbox }
    }

    /// This link, with these observers of its losses.
    #[must_use]
    pub fn observed_by(self, observers: LossObservers) -> Self {
        Self { observers, ..self }
    }

    fn is_on_at(&mut self, now: Nanos) -> bool {
        if let Schedule::Periodic = self.schedule {
            let rounds = now.saturating_sub(self.next_switch) / (self.on + self.off);
            self.next_switch += rounds * (self.on + self.off);
        }
        while self.next_switch <= now {
            self.is_on = !self.is_on;
            let mean = if self.is_on { self.on } else { self.off };
            self.next_switch += match &mut self.schedule {
                Schedule::Periodic => mean,
                Schedule::Random(random) => random.exponential(mean),
            };
        }
        self.is_on
    }
}

impl Element for OnOff {
    fn push(&mut self, packet: Packet, now: Nanos) {
        if self.is_on_at(now) {
            self.outbox.push(packet, now);
        } else {
            packet.into_segments().for_each(|segment| self.observers.lost(&segment, now));
        }
    }

    fn pop(&mut self, now: Nanos) -> Option<Departure> {
        self.outbox.pop(now)
    }

    fn next_due(&self) -> Option<Nanos> {
        self.outbox.next_due()
    }
}

/// The arguments of `mm-onoff` and `mm-intermittent`, whose schedules differ.
#[derive(Args, Debug)]
pub struct OnOffOptions {
    /// The direction whose link is on and off
    #[arg(value_enum)]
    direction: Direction,

    /// How long the link is on, in seconds, fractions allowed
    #[arg(value_name = "ON_SECONDS")]
    on: String,

    /// How long the link is off and loses every packet, in seconds
    #[arg(value_name = "OFF_SECONDS")]
    off: String,
}

impl OnOffOptions {
    /// Build both directions of a link that begins at `start`.
    pub fn build(&self, schedule: Schedule, start: Nanos) -> Result<Duplex> {
        let (on, off) = (parse_seconds(&self.on)?, parse_seconds(&self.off)?);
        if on + off == 0 {
            return Err(Error::new("a link cannot be on for 0 s and off for 0 s; give at least one of them"));
        }
        let switching: Box<dyn Element> = Box::new(OnOff::new(on, off, schedule, start));
        let always_on = always_on(start);
        Ok(match self.direction {
            Direction::Uplink => Duplex { uplink: switching, downlink: always_on },
            Direction::Downlink => Duplex { uplink: always_on, downlink: switching },
        })
    }

    /// The link in words, such as `(up) on=5s off=1s`.
    #[must_use]
    pub fn describe(&self) -> String {
        let direction = match self.direction {
            Direction::Uplink => "up",
            Direction::Downlink => "down",
        };
        format!("({direction}) on={}s off={}s", self.on, self.off)
    }
}

/// A direction that is never off.
fn always_on(start: Nanos) -> Box<dyn Element> {
    Box::new(OnOff::new(1, 0, Schedule::Periodic, start))
}

/// How long the link of `mm-net` is on and off: means or fixed times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Spans {
    on: Nanos,
    off: Nanos,
}

fn parse_spans(text: &str) -> Result<Spans> {
    let Some((on, off)) = text.split_once(',') else {
        return Err(Error::new(format!("'{text}' is not two times in seconds; give both, such as 5,1")));
    };
    let (on, off) = (parse_seconds(on)?, parse_seconds(off)?);
    if on + off == 0 {
        return Err(Error::new("a link cannot be on for 0 s and off for 0 s; give at least one of them"));
    }
    Ok(Spans { on, off })
}

/// The options of `mm-net` for a link that is on and off.
#[derive(Args, Debug)]
#[command(next_help_heading = "On and off")]
pub struct NetOnOff {
    /// Both directions are on and off, at the same instants, for random times with these means in seconds; packets that
    /// arrive while they are off are lost
    #[arg(
        long,
        value_name = "ON,OFF",
        value_parser = parse_spans,
        conflicts_with_all = ["on_off_up", "on_off_down", "intermittent", "intermittent_up", "intermittent_down"]
    )]
    on_off: Option<Spans>,

    /// The same as --on-off, only from inside to outside
    #[arg(long, value_name = "ON,OFF", value_parser = parse_spans, conflicts_with = "intermittent_up")]
    on_off_up: Option<Spans>,

    /// The same as --on-off, only from outside to inside
    #[arg(long, value_name = "ON,OFF", value_parser = parse_spans, conflicts_with = "intermittent_down")]
    on_off_down: Option<Spans>,

    /// Both directions are on and off in turn, always for these times in seconds
    #[arg(
        long,
        value_name = "ON,OFF",
        value_parser = parse_spans,
        conflicts_with_all = ["on_off_up", "on_off_down", "intermittent_up", "intermittent_down"]
    )]
    intermittent: Option<Spans>,

    /// The same as --intermittent, only from inside to outside
    #[arg(long, value_name = "ON,OFF", value_parser = parse_spans)]
    intermittent_up: Option<Spans>,

    /// The same as --intermittent, only from outside to inside
    #[arg(long, value_name = "ON,OFF", value_parser = parse_spans)]
    intermittent_down: Option<Spans>,
}

impl Impairment for NetOnOff {
    fn build(&self, context: &mut NetworkContext<'_>) -> Result<Option<Duplex>> {
        // A clone draws the same times, so both directions are off together.
        let of_both = self.on_off.map(|_| context.seed.generator("onoff"));
        let element = |random: Option<Spans>, same: Option<Spans>, purpose, observers: &LossObservers| {
            let (spans, schedule) = match (random, same) {
                (Some(spans), _) => {
                    let generator = of_both.clone().unwrap_or_else(|| context.seed.generator(purpose));
                    (spans, Schedule::Random(generator))
                }
                (None, Some(spans)) => (spans, Schedule::Periodic),
                (None, None) => return None,
            };
            let link = OnOff::new(spans.on, spans.off, schedule, context.start);
            Some(Box::new(link.observed_by(observers.clone())) as Box<dyn Element>)
        };
        let uplink = element(
            self.on_off.or(self.on_off_up),
            self.intermittent.or(self.intermittent_up),
            "onoff uplink",
            &context.losses[0],
        );
        let downlink = element(
            self.on_off.or(self.on_off_down),
            self.intermittent.or(self.intermittent_down),
            "onoff downlink",
            &context.losses[1],
        );
        let is_given = uplink.is_some() || downlink.is_some();
        let or_always = |link: Option<Box<dyn Element>>| link.unwrap_or_else(|| always_on(context.start));
        Ok(is_given.then(|| Duplex { uplink: or_always(uplink), downlink: or_always(downlink) }))
    }
}

/// A direction, as Mahimahi names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Direction {
    Uplink,
    Downlink,
}

#[cfg(test)]
mod tests {
    use clap::FromArgMatches;

    use super::*;
    use crate::time::NANOS_PER_SECOND;

    /// The instants, among this many, at which a packet passes.
    fn passes(mut link: OnOff, instants: u64) -> Vec<u64> {
        for now in 0..instants {
            link.push(Packet::new(&[0; 20]), now);
        }
        std::iter::from_fn(|| link.pop(instants)).map(|departure| departure.at).collect()
    }

    #[test]
    fn a_periodic_link_is_on_first_and_then_off_in_turn() {
        assert_eq!(passes(OnOff::new(2, 3, Schedule::Periodic, 0), 11), [0, 1, 5, 6, 10]);
        assert_eq!(passes(OnOff::new(0, 3, Schedule::Periodic, 0), 7), []);
        assert_eq!(passes(OnOff::new(2, 0, Schedule::Periodic, 0), 4), [0, 1, 2, 3]);
    }

    #[test]
    fn a_long_pause_changes_no_phase() {
        let mut link = OnOff::new(2, 3, Schedule::Periodic, 0);
        for now in [0, 5_000_000_001, 5_000_000_002] {
            link.push(Packet::new(&[0; 20]), now);
        }
        assert_eq!(
            std::iter::from_fn(|| link.pop(6_000_000_000)).map(|it| it.at).collect::<Vec<_>>(),
            [0, 5_000_000_001]
        );
    }

    #[test]
    fn a_random_link_is_on_for_its_share_of_the_time() {
        let random = Schedule::Random(Random::from_seed(1));
        let passed = passes(OnOff::new(200, 100, random, 0), 1_000_000).len();
        assert!((650_000..683_000).contains(&passed), "{passed}");
    }

    /// For each direction of `mm-net` with these options: the instants (ms) at which a packet passes.
    fn passes_of_net(options: &str) -> Option<[Vec<u64>; 2]> {
        let command = NetOnOff::augment_args(clap::Command::new("mm-net"));
        let words = ["mm-net"].into_iter().chain(options.split_whitespace());
        let options = NetOnOff::from_arg_matches(&command.try_get_matches_from(words).unwrap()).unwrap();
        let mut outputs = crate::log::Outputs::default();
        let mut context = NetworkContext {
            start: 0,
            seed: crate::random::Seed::new(None),
            rtt: None,
            outputs: &mut outputs,
            losses: Default::default(),
        };
        let network = options.build(&mut context).unwrap()?;
        Some([network.uplink, network.downlink].map(|mut link| {
            for ms in 0..10_000 {
                link.push(Packet::new(&[0; 20]), ms * 1_000_000);
            }
            std::iter::from_fn(|| link.pop(Nanos::MAX)).map(|departure| departure.at / 1_000_000).collect()
        }))
    }

    #[test]
    fn directions_are_off_at_the_same_instants_or_by_themselves() {
        let [up, down] = passes_of_net("--on-off 0.2,0.1").unwrap();
        assert_eq!(up, down);
        assert!((3_000..9_800).contains(&up.len()), "{}", up.len());
        let [up, down] = passes_of_net("--on-off-up 0.2,0.1 --on-off-down 0.2,0.1").unwrap();
        assert_ne!(up, down);
        let [up, down] = passes_of_net("--intermittent-down 4,1").unwrap();
        assert_eq!(up.len(), 10_000);
        assert_eq!(down, (0..4_000).chain(5_000..9_000).collect::<Vec<_>>());
        let [up, down] = passes_of_net("--intermittent 4,1").unwrap();
        assert_eq!((up.len(), up), (8_000, down));
        assert_eq!(passes_of_net(""), None);
    }

    #[test]
    fn times_that_are_none_are_refused_in_one_line() {
        for text in ["5", "0,0", "-1,1", "1,x", "1,2,3", ""] {
            let error = parse_spans(text).unwrap_err().to_string();
            assert!(!error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn a_random_link_that_is_never_off_passes_everything() {
        let random = Schedule::Random(Random::from_seed(1));
        assert_eq!(passes(OnOff::new(NANOS_PER_SECOND, 0, random, 0), 1000).len(), 1000);
    }
}
