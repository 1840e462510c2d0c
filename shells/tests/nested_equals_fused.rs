//! Nested shells deliver the same packets at the same instants as a single shell with all their elements.

mod support;

use proptest::prelude::*;
use shells::element::{Duplex, Element};
use shells::time::Nanos;
use support::{Arrival, arrivals, networks, number_of, numbered_packet};

/// The number of a packet and the instant at which it left.
type Delivery = (usize, Nanos);

const FOREVER: Nanos = 3_600_000_000_000;

/// Send packets through nested shells, the first of which receives them. It imitates one process for each shell,
/// without delays: a packet leaves a shell exactly when it is due there, and arrives at the next shell at the same
/// instant.
fn through_processes(mut shells: Vec<Box<dyn Element>>, arrivals: &[Arrival]) -> Vec<Delivery> {
    let mut delivered = Vec::new();
    let mut waiting = arrivals.iter().enumerate().peekable();
    loop {
        // If several events are due at the same instant, the shell nearest to the end comes first, and an arrival last.
        let due =
            shells.iter().enumerate().rev().filter_map(|(index, shell)| Some((shell.next_due()?, index)));
        let next = due.min_by_key(|(at, _)| *at).filter(|(at, _)| *at < FOREVER);
        let arrival = waiting.peek().map(|(_, (at, _))| *at);
        match (next, arrival) {
            (None, None) => return delivered,
            (Some((now, index)), arrival) if arrival.is_none_or(|at| now <= at) => {
                let Some(departure) = shells[index].pop(now) else {
                    continue;
                };
                match shells.get_mut(index + 1) {
                    Some(following) => following.push(departure.packet, now),
                    None => delivered.push((number_of(&departure.packet), now)),
                }
            }
            _ => {
                let (number, (now, length)) = waiting.next().unwrap();
                shells[0].push(numbered_packet(number, *length), *now);
            }
        }
    }
}

/// Send packets through a single shell. They are taken out only at every seventh arrival and at the very end, even if
/// they were due long before.
fn through_a_sleepy_hop(mut hop: Box<dyn Element>, arrivals: &[Arrival]) -> Vec<Delivery> {
    let mut delivered = Vec::new();
    let mut take_out = |hop: &mut dyn Element, now| {
        while let Some(departure) = hop.pop(now) {
            delivered.push((number_of(&departure.packet), departure.at));
        }
    };
    for (number, (now, length)) in arrivals.iter().enumerate() {
        hop.push(numbered_packet(number, *length), *now);
        if number % 7 == 0 {
            take_out(hop.as_mut(), *now);
        }
    }
    take_out(hop.as_mut(), FOREVER);
    delivered
}

proptest! {
    #[test]
    fn uplink(network in networks(), arrivals in arrivals()) {
        let nested = network.shells().into_iter().rev().map(|shell| shell.uplink).collect();
        let fused = || Duplex::stack(network.shells()).uplink;
        let expected = through_processes(nested, &arrivals);
        prop_assert_eq!(&through_processes(vec![fused()], &arrivals), &expected);
        prop_assert_eq!(&through_a_sleepy_hop(fused(), &arrivals), &expected);
    }

    #[test]
    fn downlink(network in networks(), arrivals in arrivals()) {
        let nested = network.shells().into_iter().map(|shell| shell.downlink).collect();
        let fused = || Duplex::stack(network.shells()).downlink;
        let expected = through_processes(nested, &arrivals);
        prop_assert_eq!(&through_processes(vec![fused()], &arrivals), &expected);
        prop_assert_eq!(&through_a_sleepy_hop(fused(), &arrivals), &expected);
    }
}
