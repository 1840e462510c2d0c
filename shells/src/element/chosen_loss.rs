//! Loss of packets that were chosen beforehand.

use clap::Args;

use super::{Departure, Duplex, Element, Impairment, LossObservers, NetworkContext, Outbox};
use crate::error::{Error, Result};
use crate::packet::Packet;
use crate::time::Nanos;
use crate::units::{parse_milliseconds, parse_packet_number};

/// Loses chosen packets, each once: packets by number, and the first packet at or after certain times.
///
/// Packets are counted from 1, as they would be on a wire: each segment of a large packet by itself.
pub struct ChosenLoss {
    numbers: Upcoming,
    /// Instants, not yet reached by a packet.
    times: Upcoming,
    /// Packets that have come.
    count: u64,
    observers: LossObservers,
    outbox: Outbox,
}

impl ChosenLoss {
    /// Numbers of packets, and times since `start`.
    #[must_use]
    pub fn new(numbers: &Choice, times: &Choice, start: Nanos, observers: LossObservers) -> Self {
        Self {
            numbers: Upcoming::new(numbers.0.iter().copied()),
            times: Upcoming::new(times.0.iter().map(|time| start.saturating_add(*time))),
            count: 0,
            observers,
            outbox: Outbox::default(),
        }
    }
}

impl Element for ChosenLoss {
    fn push(&mut self, packet: Packet, now: Nanos) {
        if self.numbers.is_empty() && self.times.is_empty() {
            self.outbox.push(packet, now);
            return;
        }
        for packet in packet.into_segments() {
            self.count += 1;
            // Query both, so that a packet that was chosen twice does not cause another one to be lost.
            let has_number = self.numbers.reached(self.count);
            let has_time = self.times.reached(now);
            if has_number || has_time {
                self.observers.lost(&packet, now);
            } else {
                self.outbox.push(packet, now);
            }
        }
    }

    fn pop(&mut self, now: Nanos) -> Option<Departure> {
        self.outbox.pop(now)
    }

    fn next_due(&self) -> Option<Nanos> {
        self.outbox.next_due()
    }
}

/// The thresholds that a growing value has not reached yet.
#[derive(Debug)]
struct Upcoming {
    /// Sorted so that the next one is last.
    descending: Vec<u64>,
}

impl Upcoming {
    fn new(values: impl Iterator<Item = u64>) -> Self {
        let mut descending: Vec<_> = values.collect();
        descending.sort_unstable_by(|one, other| other.cmp(one));
        Self { descending }
    }

    fn is_empty(&self) -> bool {
        self.descending.is_empty()
    }

    /// Whether `value` is the first to reach one or more of them.
    fn reached(&mut self, value: u64) -> bool {
        let waiting = self.descending.len();
        while self.descending.last().is_some_and(|next| *next <= value) {
            self.descending.pop();
        }
        self.descending.len() < waiting
    }
}

/// Which packets to lose in one direction: distinct numbers, or distinct times, in any order.
#[derive(Clone, Debug, Default)]
pub struct Choice(Vec<u64>);

impl Choice {
    /// Parse numbers of packets, such as `120,340`.
    pub fn parse_numbers(text: &str) -> Result<Self> {
        Self::parse(text, parse_packet_number)
    }

    /// Parse times in milliseconds, such as `0.5,1500`.
    pub fn parse_times(text: &str) -> Result<Self> {
        Self::parse(text, parse_milliseconds)
    }

    fn parse(text: &str, parse_value: impl Fn(&str) -> Result<u64>) -> Result<Self> {
        let mut values = Vec::new();
        for word in text.split(',') {
            let value = parse_value(word)?;
            if values.contains(&value) {
                return Err(Error::new(format!("'{text}' has {word} twice; give each once")));
            }
            values.push(value);
        }
        Ok(Self(values))
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// The options of `mm-loss` that choose packets, in its direction.
#[derive(Args, Debug)]
#[command(next_help_heading = "Chosen packets")]
pub struct ChosenLossOptions {
    /// Lose the packets of these numbers. They are counted from 1 in the direction that has the loss, each segment of a
    /// large packet by itself
    #[arg(long, value_name = "NUMBER,…", value_parser = Choice::parse_numbers)]
    packets: Option<Choice>,

    /// Lose the first packet at or after each of these times, in milliseconds since the start
    #[arg(long, value_name = "MS,…", value_parser = Choice::parse_times)]
    at: Option<Choice>,
}

impl ChosenLossOptions {
    /// The losses in the selected directions; `None` if no packet was chosen.
    #[must_use]
    pub fn build(&self, uplink: bool, downlink: bool, start: Nanos) -> Option<Duplex> {
        let chosen = |has_loss: bool| {
            let choice = |given: &Option<Choice>| given.clone().filter(|_| has_loss).unwrap_or_default();
            (choice(&self.packets), choice(&self.at))
        };
        both_directions(&chosen(uplink), &chosen(downlink), start, &Default::default())
    }
}

/// The options of `mm-net` that choose packets.
#[derive(Args, Debug)]
#[command(next_help_heading = "Chosen packets")]
pub struct NetChosenLoss {
    /// Lose the packets of these numbers from inside to outside. They are counted from 1 at the inner end of the
    /// network, each segment of a large packet by itself
    #[arg(long, value_name = "NUMBER,…", value_parser = Choice::parse_numbers)]
    drop_up_packets: Option<Choice>,

    /// Lose the packets of these numbers from outside to inside, counted as they reach the inner end
    #[arg(long, value_name = "NUMBER,…", value_parser = Choice::parse_numbers)]
    drop_down_packets: Option<Choice>,

    /// Lose the first packet from inside to outside at or after each of these times, in milliseconds since the start
    #[arg(long, value_name = "MS,…", value_parser = Choice::parse_times)]
    drop_up_at: Option<Choice>,

    /// Lose the first packet from outside to inside that reaches the inner end at or after each of these times
    #[arg(long, value_name = "MS,…", value_parser = Choice::parse_times)]
    drop_down_at: Option<Choice>,
}

impl Impairment for NetChosenLoss {
    fn build(&self, context: &mut NetworkContext<'_>) -> Result<Option<Duplex>> {
        let choice = |given: &Option<Choice>| given.clone().unwrap_or_default();
        let uplink = (choice(&self.drop_up_packets), choice(&self.drop_up_at));
        let downlink = (choice(&self.drop_down_packets), choice(&self.drop_down_at));
        Ok(both_directions(&uplink, &downlink, context.start, &context.losses))
    }
}

/// Numbers and times of the packets to lose in one direction.
type Chosen = (Choice, Choice);

fn both_directions(
    uplink: &Chosen,
    downlink: &Chosen,
    start: Nanos,
    observers: &[LossObservers; 2],
) -> Option<Duplex> {
    let is_empty = |(numbers, times): &Chosen| numbers.is_empty() && times.is_empty();
    let element = |(numbers, times): &Chosen, observers: &LossObservers| {
        Box::new(ChosenLoss::new(numbers, times, start, observers.clone()))
    };
    let has_loss = !is_empty(uplink) || !is_empty(downlink);
    has_loss.then(|| Duplex {
        uplink: element(uplink, &observers[0]),
        downlink: element(downlink, &observers[1]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::Offload;
    use crate::time::NANOS_PER_MILLISECOND;

    /// The numbers of the packets that are lost among those that arrive at these times, in ms.
    fn lost(numbers: &str, times: &str, start_ms: u64, arrivals_ms: &[u64]) -> Vec<usize> {
        let choice = |text: &str, parse: fn(&str) -> Result<Choice>| match text {
            "" => Choice::default(),
            text => parse(text).unwrap(),
        };
        let (numbers, times) = (choice(numbers, Choice::parse_numbers), choice(times, Choice::parse_times));
        let start = start_ms * NANOS_PER_MILLISECOND;
        let mut loss = ChosenLoss::new(&numbers, &times, start, LossObservers::default());
        let passes = |(index, at): (usize, &u64)| {
            let now = at * NANOS_PER_MILLISECOND;
            loss.push(Packet::new(&[0; 20]), now);
            let departure = loss.pop(now);
            assert!(departure.as_ref().is_none_or(|departure| departure.at == now));
            departure.is_none().then_some(index + 1)
        };
        arrivals_ms.iter().enumerate().filter_map(passes).collect()
    }

    #[test]
    fn packets_are_lost_by_number_in_any_order_of_the_numbers() {
        assert_eq!(lost("4,1", "", 0, &[7, 7, 8, 9, 9]), [1, 4]);
        assert_eq!(lost("9", "", 0, &[7, 7, 8, 9, 9]), []);
    }

    #[test]
    fn the_first_packet_at_or_after_a_time_since_the_start_is_lost() {
        assert_eq!(lost("", "30,10", 100, &[50, 109, 110, 110, 125, 140, 150]), [3, 6]);
        assert_eq!(lost("", "0", 100, &[100, 100]), [1]);
        // One packet is the first after several times.
        assert_eq!(lost("", "10,11,12.5", 0, &[9, 13, 14]), [2]);
    }

    #[test]
    fn a_packet_chosen_by_number_and_by_time_is_lost_once() {
        assert_eq!(lost("2,3", "10", 0, &[9, 10, 11, 12]), [2, 3]);
    }

    #[test]
    fn each_segment_of_a_large_packet_counts() {
        let mut bytes = [0; 40 + 2500];
        bytes[0] = 0x45;
        bytes[32] = 5 << 4;
        let (numbers, times) = (Choice::parse_numbers("3").unwrap(), Choice::parse_times("0").unwrap());
        let mut loss = ChosenLoss::new(&numbers, &times, 0, LossObservers::default());
        loss.push(Packet::with_offload(Offload::tcp(false, 20, 1000), &bytes), 5);
        let lengths: Vec<_> =
            std::iter::from_fn(|| loss.pop(5)).map(|departure| departure.packet.ip_length()).collect();
        // The first packet is lost because of its time, the third because of its number.
        assert_eq!(lengths, [1040]);
    }

    #[test]
    fn choices_that_are_none_are_refused_in_one_line() {
        for (text, wanted) in
            [("0", "'0' is not the number of a packet"), ("3,1,3", "has 3 twice"), ("", "''")]
        {
            let error = Choice::parse_numbers(text).unwrap_err().to_string();
            assert!(error.contains(wanted) && !error.contains('\n'), "{error}");
        }
        for text in ["1.5", "-1", "x", "3,", "3 4", "99999999999999999999"] {
            assert!(Choice::parse_numbers(text).is_err(), "{text}");
        }
        for text in ["-1", "1s", "2,2.0", "1,,2"] {
            assert!(Choice::parse_times(text).is_err(), "{text}");
        }
    }
}
