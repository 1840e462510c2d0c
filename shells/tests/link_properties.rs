//! Properties of every link, whatever its rate, queue and packets.

mod support;

use std::cell::RefCell;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use proptest::prelude::*;
use shells::element::{Element, LinkObserver};
use shells::link::Rate;
use shells::packet::{Packet, TUN_HEADER_BYTES};
use shells::queue::QueueSpec;
use shells::time::{NANOS_PER_MILLISECOND, NANOS_PER_SECOND, Nanos};
use shells::trace::{OPPORTUNITY_BYTES, Trace};
use support::{Arrival, Network, arrivals, networks, number_of, numbered_packet};

/// Long enough for the slowest link to send as many packets as any test has.
const LONG_ENOUGH: Nanos = 30 * NANOS_PER_SECOND;

/// Everything that happened at a link.
#[derive(Default)]
struct Events {
    arrived: Vec<usize>,
    dropped: Vec<usize>,
    /// The number of each packet, its size in bytes, and the instant at which it left.
    departed: Vec<(usize, usize, Nanos)>,
    opportunities: Vec<Nanos>,
}

struct Recorder(Rc<RefCell<Events>>);

impl LinkObserver for Recorder {
    fn arrived(&mut self, packet: &Packet, _at: Nanos) {
        self.0.borrow_mut().arrived.push(number_of(packet));
    }

    fn could_send(&mut self, at: Nanos) {
        self.0.borrow_mut().opportunities.push(at);
    }

    fn dropped(&mut self, packets: &[Packet], _at: Nanos) {
        self.0.borrow_mut().dropped.extend(packets.iter().map(number_of));
    }

    fn departed(&mut self, packet: &Packet, _arrived: Nanos, at: Nanos) {
        self.0.borrow_mut().departed.push((number_of(packet), packet.ip_length(), at));
    }
}

/// Send packets through a link until `end`. Returns the events at the link, and the numbers of the packets that came
/// out.
fn run(network: &Network, arrivals: &[Arrival], end: Nanos) -> (Events, Vec<usize>) {
    let events = Rc::new(RefCell::new(Events::default()));
    let mut link: Box<dyn Element> = network.link("link", vec![Box::new(Recorder(Rc::clone(&events)))]);
    let mut out = Vec::new();
    let mut take_out = |link: &mut dyn Element, now| {
        while let Some(departure) = link.pop(now) {
            out.push(number_of(&departure.packet));
        }
    };
    for (number, (now, length)) in arrivals.iter().enumerate() {
        link.push(numbered_packet(number, *length), *now);
        // Packets are taken out late, as on a busy machine, but often enough that the many packets for a recorded trace
        // do not fill the memory.
        if number % 1000 == 999 {
            take_out(link.as_mut(), *now);
        }
    }
    take_out(link.as_mut(), end);
    drop(link);
    (Rc::into_inner(events).unwrap().into_inner(), out)
}

proptest! {
    #[test]
    fn packets_are_conserved_and_keep_their_order(
        network in networks(), arrivals in arrivals(), end in 100_000_000u64..300_000_000,
    ) {
        let (events, out) = run(&network, &arrivals, end);
        let sent: Vec<_> = events.departed.iter().map(|(number, ..)| *number).collect();
        prop_assert_eq!(&sent, &out);
        prop_assert!(sent.is_sorted());
        prop_assert_eq!(&events.arrived, &(0..arrivals.len()).collect::<Vec<_>>());

        let mut seen: Vec<_> = sent.into_iter().chain(events.dropped).collect();
        seen.sort_unstable();
        let total = seen.len();
        seen.dedup();
        prop_assert_eq!(seen.len(), total, "a packet was both sent and dropped, or twice");
        // A packet that was neither sent nor dropped is still in the queue, and comes out if there is more time.
        let (later, _) = run(&network, &arrivals, LONG_ENOUGH);
        prop_assert_eq!(later.departed.len() + later.dropped.len(), arrivals.len());
    }

    #[test]
    fn the_rate_is_never_exceeded(network in networks(), arrivals in arrivals()) {
        let (events, _) = run(&network, &arrivals, LONG_ENOUGH);
        let departed = &events.departed;
        for (first, (_, _, from)) in departed.iter().enumerate() {
            let mut bytes = 0;
            for (_, size, until) in &departed[first + 1..] {
                bytes += size;
                let capacity_bytes = match &network.rate {
                    // One nanosecond more, since instants are rounded up.
                    Rate::Constant { bps } => (until - from + 1) as f64 * *bps as f64 / 8e9,
                    Rate::Trace { trace, .. } => {
                        // The packet at `from` may have left any part of its opportunity to the packets after it.
                        let used = trace.first_after(*until) - trace.first_after(from.saturating_sub(1));
                        (used * OPPORTUNITY_BYTES as u64) as f64
                    }
                };
                prop_assert!(bytes as f64 <= capacity_bytes, "{bytes} bytes from {from} to {until}");
            }
        }
    }
}

/// The number and the instant of each departure by Mahimahi's rule, computed in the simplest way: opportunity by
/// opportunity.
fn departures_by_hand(opportunities: &[Nanos], arrivals: &[Arrival]) -> Vec<(usize, Nanos)> {
    let mut departures = Vec::new();
    let mut next = 0;
    let mut left = None;
    for at in opportunities {
        let mut bytes = OPPORTUNITY_BYTES;
        while bytes > 0 && next < arrivals.len() && arrivals[next].0 < *at {
            let needed = left.unwrap_or(arrivals[next].1 + TUN_HEADER_BYTES);
            if needed > bytes {
                left = Some(needed - bytes);
                break;
            }
            bytes -= needed;
            left = None;
            departures.push((next, *at));
            next += 1;
        }
    }
    departures
}

fn opportunities_by_hand(text: &str, end: Nanos) -> Vec<Nanos> {
    let lines: Vec<u64> = text.lines().map(|line| line.parse().unwrap()).collect();
    let period = *lines.last().unwrap();
    let rounds = (0..).flat_map(|round| lines.iter().map(move |line| round * period + line));
    rounds.map(|milliseconds| milliseconds * NANOS_PER_MILLISECOND).take_while(|at| *at <= end).collect()
}

/// Check a trace over two of its rounds, with packets that keep the link partly busy.
fn check_trace(text: &str) {
    let trace = Trace::parse(text, "test").unwrap();
    let end = 2 * trace.period();
    let opportunities = opportunities_by_hand(text, end);
    let arrivals: Vec<Arrival> = (0..end / 1_300_000)
        .map(|index| (index * 1_300_000, if index % 5 == 0 { 60 } else { 1500 }))
        .collect();
    let network = Network {
        delay: 0,
        rate: Rate::Trace { trace: trace.into(), path: "test".to_owned() },
        queue: QueueSpec::default(),
        loss: 0.0,
        repeat: None,
        on_off: None,
        chosen_packets: Vec::new(),
        chosen_times_ms: Vec::new(),
        seed: 0,
    };
    let (events, _) = run(&network, &arrivals, end);
    let departed: Vec<_> = events.departed.iter().map(|(number, _, at)| (*number, *at)).collect();
    // assert_eq! would print all of them, which are a hundred thousand.
    assert!(departed == departures_by_hand(&opportunities, &arrivals));
    assert!(events.opportunities == opportunities);
}

#[test]
fn opportunities_match_one_by_one() {
    for text in ["1\n", "0\n0\n3\n3\n", "2\n2\n2\n2\n50\n", "7\n8\n9\n10\n"] {
        check_trace(text);
    }
}

/// Recorded traces: those in the folder that `SHELLS_TEST_TRACES` names, by default those next to the repository.
#[test]
fn opportunities_of_recorded_traces_match_one_by_one() {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/traces");
    let folder = std::env::var_os("SHELLS_TEST_TRACES").map_or(beside, PathBuf::from);
    if !folder.exists() {
        // If a test passes, the test harness does not show the output of eprintln!.
        let _ = writeln!(io::stderr(), "skipped: there are no recorded traces in {}", folder.display());
        return;
    }
    let traces: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!traces.is_empty(), "{} is empty", folder.display());
    for path in traces {
        check_trace(&std::fs::read_to_string(path).unwrap());
    }
}
