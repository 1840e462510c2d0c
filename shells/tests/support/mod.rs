//! The common parts of the property tests: packets to send, and networks to send them through.

#![allow(dead_code, reason = "each test uses part of it")]

use std::ops::Range;
use std::sync::Arc;

use proptest::prelude::*;
use shells::element::{
    Choice, ChosenLoss, Delay, Duplex, Element, LinkObserver, Loss, LossModel, LossObservers, OnOff, Order,
    Persistence, Retransmission, Schedule,
};
use shells::error::Result;
use shells::link::{LinkSpec, Rate};
use shells::packet::Packet;
use shells::queue::{KINDS, QueueKind, QueueSpec};
use shells::random::Seed;
use shells::time::Nanos;
use shells::trace::{Rounds, Trace};

/// A packet to send: the instant, and the packet's IP length.
pub type Arrival = (Nanos, usize);

/// Packets over about 100 ms, in order of time, some of them at the same instant.
pub fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    prop::collection::vec((0u64..100_000_000, 20usize..=1500), 1..300).prop_map(|mut list| {
        list.sort_by_key(|(at, _)| *at);
        list
    })
}

/// A packet of this length that contains its number.
pub fn numbered_packet(number: usize, length: usize) -> Packet {
    let mut bytes = vec![0; length];
    bytes[12..20].copy_from_slice(&(number as u64).to_be_bytes());
    Packet::new(&bytes)
}

pub fn number_of(packet: &Packet) -> usize {
    u64::from_be_bytes(packet.bytes()[12..20].try_into().unwrap()) as usize
}

/// The parameters of nested shells: delay, link, loss, on/off and chosen loss.
#[derive(Clone, Debug)]
pub struct Network {
    pub delay: Nanos,
    pub rate: Rate,
    pub queue: QueueSpec,
    pub loss: f64,
    /// For a link that repairs its losses: the time that a failed try costs, the limit of tries, and whether packets
    /// keep their order.
    pub repeat: Option<(Nanos, Option<u64>, bool)>,
    /// How long the network is on, how long it is off, and whether these times are random.
    pub on_off: Option<(Nanos, Nanos, bool)>,
    /// The packets that are chosen to be lost, by their numbers and by times in ms.
    pub chosen_packets: Vec<u64>,
    pub chosen_times_ms: Vec<u64>,
    pub seed: u64,
}

pub fn networks() -> impl Strategy<Value = Network> {
    let delay = 0u64..20_000_000;
    let repeat = (1u64..30_000_000, prop::option::of(2u64..5), any::<bool>());
    let loss = (prop_oneof![Just(0.0), 0.0..0.3], prop::option::of(repeat));
    let on_off = prop::option::of((1u64..60_000_000, 0u64..30_000_000, any::<bool>()));
    (delay, rates(), queues(), (loss, on_off), chosen(1..300), chosen(0..150), any::<u64>()).prop_map(
        |(delay, rate, queue, ((loss, repeat), on_off), chosen_packets, chosen_times_ms, seed)| Network {
            delay,
            rate,
            queue,
            loss,
            repeat,
            on_off,
            chosen_packets,
            chosen_times_ms,
            seed,
        },
    )
}

/// Up to five different numbers from this range.
fn chosen(range: Range<u64>) -> impl Strategy<Value = Vec<u64>> {
    prop::collection::hash_set(range, 0..6).prop_map(Vec::from_iter)
}

pub fn rates() -> impl Strategy<Value = Rate> {
    prop_oneof![
        (200_000u64..20_000_000).prop_map(|bps| Rate::Constant { bps }),
        traces().prop_map(|trace| Rate::Trace { trace: Arc::new(trace), path: "generated".to_owned() }),
    ]
}

pub fn traces() -> impl Strategy<Value = Trace> {
    prop::collection::vec(0u64..40, 1..60).prop_map(|mut lines| {
        lines.sort_unstable();
        *lines.last_mut().unwrap() += 1;
        let text: Vec<_> = lines.iter().map(u64::to_string).collect();
        Trace::parse(&text.join("\n"), "generated").unwrap()
    })
}

pub fn queue_kinds() -> impl Strategy<Value = &'static QueueKind> {
    prop::sample::select(KINDS.iter().collect::<Vec<_>>())
}

pub fn queues() -> impl Strategy<Value = QueueSpec> {
    let limit = 1500u64..60_000;
    let kind = queue_kinds().prop_filter("needs a limit", |kind| kind.has_limit);
    prop_oneof![
        Just(QueueSpec::default()),
        (kind, limit).prop_map(|(kind, bytes)| QueueSpec::parse(kind, &format!("bytes={bytes}")).unwrap()),
    ]
}

impl Network {
    /// The network's shells, outermost first, each with its elements for both directions.
    pub fn shells(&self) -> Vec<Duplex> {
        let seed = Seed::new(Some(self.seed));
        let model = LossModel::Independent { probability: self.loss };
        let delay = || -> Box<dyn Element> { Box::new(Delay::new(self.delay)) };
        let loss = |purpose| -> Box<dyn Element> {
            let random = seed.generator(purpose);
            match self.repeat {
                None => Box::new(Loss::new(model, random, LossObservers::default())),
                Some((repeat, tries, keeps_order)) => {
                    let order = if keeps_order { Order::OfArrival } else { Order::Any };
                    let persistence = Persistence { repeat, tries, order };
                    let repeats = seed.generator("retransmission");
                    let observers = LossObservers::default();
                    Box::new(Retransmission::new(self.loss, persistence, random, repeats, observers))
                }
            }
        };
        let on_off = || -> Box<dyn Element> {
            let (on, off, is_random) = self.on_off.unwrap_or((1, 0, false));
            let schedule =
                if is_random { Schedule::Random(seed.generator("onoff")) } else { Schedule::Periodic };
            Box::new(OnOff::new(on, off, schedule, 0))
        };
        let chosen_loss = || -> Box<dyn Element> {
            let numbers = choice(&self.chosen_packets, Choice::parse_numbers);
            let times = choice(&self.chosen_times_ms, Choice::parse_times);
            Box::new(ChosenLoss::new(&numbers, &times, 0, LossObservers::default()))
        };
        vec![
            Duplex { uplink: delay(), downlink: delay() },
            Duplex { uplink: self.link("link uplink", vec![]), downlink: self.link("link downlink", vec![]) },
            Duplex { uplink: loss("loss uplink"), downlink: loss("loss downlink") },
            Duplex { uplink: on_off(), downlink: on_off() },
            Duplex { uplink: chosen_loss(), downlink: chosen_loss() },
        ]
    }

    pub fn link(&self, purpose: &str, observers: Vec<Box<dyn LinkObserver>>) -> Box<dyn Element> {
        let spec = LinkSpec {
            rate: self.rate.clone(),
            queue: self.queue.clone(),
            rounds: Rounds::Forever,
            rtt: Some(2 * self.delay),
        };
        spec.build(0, Seed::new(Some(self.seed)).generator(purpose), observers).unwrap()
    }
}

/// The chosen packets for these values, which are parsed as on the command line.
fn choice(values: &[u64], parse: impl Fn(&str) -> Result<Choice>) -> Choice {
    let words: Vec<_> = values.iter().map(u64::to_string).collect();
    if words.is_empty() { Choice::default() } else { parse(&words.join(",")).unwrap() }
}
