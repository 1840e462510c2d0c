//! How to add an element or a queue: one value of a public type, which the shells use like their own.

use std::collections::VecDeque;

use clap::{Args, Command};
use shells::element::{
    Departure, Duplex, Element, IMPAIRMENTS, Impairment, NetworkContext, Outbox, Registration, add_options,
    build_network,
};
use shells::error::Result;
use shells::link::{LinkSpec, Rate};
use shells::log::Outputs;
use shells::packet::Packet;
use shells::queue::{LinkFacts, Parameter, Queue, QueueKind, QueueSpec, Waiting};
use shells::random::{Random, Seed};
use shells::time::{NANOS_PER_MILLISECOND, Nanos};
use shells::trace::Rounds;

/// Sends the packet that arrived last first, and drops every n-th arrival.
struct LastInFirstOut {
    waiting: VecDeque<Waiting>,
    arrivals: usize,
    every: usize,
}

const LAST_IN_FIRST_OUT: QueueKind = QueueKind {
    name: "lifo",
    summary: "Sends what arrived last, and drops every n-th packet",
    has_limit: false,
    parameters: &[Parameter::number("every")],
    build: |parts| {
        let every = parts.arguments.number("every")?.unwrap_or(2.0) as usize;
        Ok(Box::new(LastInFirstOut { waiting: VecDeque::new(), arrivals: 0, every }))
    },
};

impl Queue for LastInFirstOut {
    fn enqueue(&mut self, waiting: Waiting, dropped: &mut Vec<Packet>) {
        self.arrivals += 1;
        if self.arrivals % self.every == 0 {
            dropped.push(waiting.packet);
        } else {
            self.waiting.push_back(waiting);
        }
    }

    fn dequeue(&mut self, _now: Nanos, _dropped: &mut Vec<Packet>) -> Option<Waiting> {
        self.waiting.pop_back()
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

/// Send packets of these lengths, all at the same time; returns the lengths and times (ms) of those that leave.
fn departures(element: &mut dyn Element, lengths: &[usize]) -> Vec<(usize, Nanos)> {
    for length in lengths {
        element.push(Packet::new(&vec![0; *length]), 0);
    }
    std::iter::from_fn(|| element.pop(Nanos::MAX / 2))
        .map(|departure| (departure.packet.ip_length(), departure.at / NANOS_PER_MILLISECOND))
        .collect()
}

#[test]
fn a_link_uses_a_queue_that_is_defined_elsewhere() {
    let queue = QueueSpec::parse(&LAST_IN_FIRST_OUT, "every=3").unwrap();
    assert_eq!(queue.to_string(), "lifo [every=3]");
    let link =
        LinkSpec { rate: Rate::Constant { bps: 8_000_000 }, queue, rounds: Rounds::Forever, rtt: None };
    let mut link = link.build(0, Random::from_seed(0), Vec::new()).unwrap();
    // The first packet is being sent when the others arrive; the third and the sixth are dropped.
    let sent = departures(link.as_mut(), &[1000, 2000, 3000, 4000, 5000, 6000]);
    assert_eq!(sent, [(1000, 1), (5000, 6), (4000, 10), (2000, 12)]);
    assert!(QueueSpec::parse(&LAST_IN_FIRST_OUT, "bytes=3").is_err());
    let facts = LinkFacts { rate_bps: 1e6, header_bytes: 0, rtt: None };
    let nonsense = QueueSpec::parse(&LAST_IN_FIRST_OUT, "every=x").unwrap();
    assert!(nonsense.build(facts, Random::from_seed(0)).is_err());
}

/// Sends every packet twice.
#[derive(Default)]
struct Duplicate(Outbox);

impl Element for Duplicate {
    fn push(&mut self, packet: Packet, now: Nanos) {
        self.0.push(packet.clone(), now);
        self.0.push(packet, now);
    }

    fn pop(&mut self, now: Nanos) -> Option<Departure> {
        self.0.pop(now)
    }

    fn next_due(&self) -> Option<Nanos> {
        self.0.next_due()
    }
}

#[derive(Args)]
#[command(next_help_heading = "Duplicates")]
struct DuplicateOptions {
    /// Send every packet twice
    #[arg(long)]
    duplicate: bool,
}

impl Impairment for DuplicateOptions {
    fn build(&self, _context: &mut NetworkContext<'_>) -> Result<Option<Duplex>> {
        let element = || Box::new(Duplicate::default());
        Ok(self.duplicate.then(|| Duplex { uplink: element(), downlink: element() }))
    }
}

#[test]
fn a_network_uses_an_element_that_is_defined_elsewhere() {
    let impairments = [IMPAIRMENTS, &[Registration::of::<DuplicateOptions>()]].concat();
    let mut command = add_options(&impairments, Command::new("mm-net"));
    let help = command.render_help().to_string();
    assert!(help.contains("--duplicate") && help.contains("Send every packet twice"), "{help}");

    let uplink = |words: &str| {
        let words = ["mm-net"].into_iter().chain(words.split_whitespace());
        let matches = command.clone().try_get_matches_from(words).unwrap();
        let mut outputs = Outputs::default();
        let mut context = NetworkContext {
            start: 0,
            seed: Seed::default(),
            rtt: None,
            outputs: &mut outputs,
            losses: Default::default(),
        };
        build_network(&impairments, &matches, &mut context).unwrap().uplink
    };
    let options = "--delay 7 --up 8M --down 8M";
    assert_eq!(departures(uplink(options).as_mut(), &[1000]), [(1000, 8)]);
    // The element is the innermost one, so the link sends both copies.
    let twice = departures(uplink(&format!("{options} --duplicate")).as_mut(), &[1000]);
    assert_eq!(twice, [(1000, 8), (1000, 9)]);
}
