//! Random loss.

use clap::Args;

use super::{
    Departure, Duplex, Element, Impairment, LossObservers, NetworkContext, Order, Outbox, Persistence,
    Retransmission,
};
use crate::error::{Error, Result};
use crate::packet::Packet;
use crate::random::{Random, Seed};
use crate::time::Nanos;
use crate::units::{one_way_loss, parse_milliseconds, parse_probability};

/// How the packets to lose are chosen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LossModel {
    /// Each packet is lost with the same probability, whatever happened to the others.
    Independent { probability: f64 },
    /// Packets are lost in bursts (Gilbert 1960, Elliott 1963). The network is in a good or a bad state, which may
    /// change with each packet; the probability of loss depends on the state.
    GilbertElliott { good_to_bad: f64, bad_to_good: f64, loss_in_bad: f64, loss_in_good: f64 },
}

impl LossModel {
    /// Bursts in which all packets are lost, with this mean length; they lose this share of all packets.
    ///
    /// `None` when no such bursts exist. A burst has at least one packet, and so has the time in the good state between
    /// two bursts: its mean length is `mean_packets` × (1 − `probability`) / `probability`.
    #[must_use]
    pub fn bursts(probability: f64, mean_packets: f64) -> Option<Self> {
        let bad_to_good = 1.0 / mean_packets;
        let good_to_bad = bad_to_good * probability / (1.0 - probability);
        let possible = mean_packets >= 1.0 && probability < 1.0 && good_to_bad <= 1.0;
        possible.then_some(Self::GilbertElliott {
            good_to_bad,
            bad_to_good,
            loss_in_bad: 1.0,
            loss_in_good: 0.0,
        })
    }

    fn never_loses(self) -> bool {
        self == Self::Independent { probability: 0.0 }
    }
}

/// Loses packets by a model.
pub struct Loss {
    model: LossModel,
    /// The state of the network: bad or good; it starts good.
    bad: bool,
    random: Random,
    observers: LossObservers,
    outbox: Outbox,
}

impl Loss {
    #[must_use]
    pub fn new(model: LossModel, random: Random, observers: LossObservers) -> Self {
        Self { model, bad: false, random, observers, outbox: Outbox::default() }
    }

    /// Whether the next packet is lost.
    fn loses(&mut self) -> bool {
        match self.model {
            LossModel::Independent { probability } => self.random.chance(probability),
            LossModel::GilbertElliott { good_to_bad, bad_to_good, loss_in_bad, loss_in_good } => {
                let (change, loss) =
                    if self.bad { (bad_to_good, loss_in_bad) } else { (good_to_bad, loss_in_good) };
                let lost = self.random.chance(loss);
                self.bad ^= self.random.chance(change);
                lost
            }
        }
    }
}

impl Element for Loss {
    fn push(&mut self, packet: Packet, now: Nanos) {
        if self.model.never_loses() {
            self.outbox.push(packet, now);
            return;
        }
        for packet in packet.into_segments() {
            if self.loses() {
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

/// The options of `mm-loss`: loss in bursts, and loss that the link repairs.
#[derive(Args, Debug)]
#[command(next_help_heading = "Loss")]
pub struct LossOptions {
    /// Lose packets in bursts of this many on average, instead of independently
    #[arg(long, value_name = "PACKETS", conflicts_with = "gilbert_elliott")]
    burst: Option<f64>,

    /// Lose packets by this model instead of with one probability. Its probabilities are those of becoming bad, of
    /// becoming good again, of loss while bad, and of loss while good. It applies to directions whose loss is not 0
    #[arg(long, value_name = "P,R,B,G", value_parser = parse_gilbert_elliott)]
    gilbert_elliott: Option<LossModel>,

    /// Lose nothing: a packet that would be lost arrives later by this much for each try that fails, and what follows it
    /// waits, as on a link that repeats what it loses (ARQ)
    #[arg(
        long,
        value_name = "MS",
        value_parser = parse_milliseconds,
        conflicts_with_all = ["burst", "gilbert_elliott"]
    )]
    retransmit: Option<Nanos>,

    /// Lose a packet after this many tries, the first included, instead of repeating it until it arrives
    #[arg(long, value_name = "TRIES", value_parser = clap::value_parser!(u64).range(2..), requires = "retransmit")]
    retransmit_tries: Option<u64>,

    /// Let later packets overtake one that is being repeated
    #[arg(long, requires = "retransmit")]
    retransmit_reorder: bool,
}

impl LossOptions {
    /// Build both directions, with the probability of loss in each.
    pub fn build(
        &self,
        uplink: f64,
        downlink: f64,
        seed: Seed,
        observers: &[LossObservers; 2],
    ) -> Result<Duplex> {
        if self.retransmit.is_some() && uplink == 0.0 && downlink == 0.0 {
            return Err(Error::new("--retransmit needs a loss to repair; give one of more than 0"));
        }
        Ok(Duplex {
            uplink: self.element(uplink, seed, ["loss uplink", "retransmission uplink"], &observers[0])?,
            downlink: self.element(
                downlink,
                seed,
                ["loss downlink", "retransmission downlink"],
                &observers[1],
            )?,
        })
    }

    /// One direction; `purposes` name its random generators: for losses, and for repeats.
    fn element(
        &self,
        probability: f64,
        seed: Seed,
        purposes: [&str; 2],
        observers: &LossObservers,
    ) -> Result<Box<dyn Element>> {
        let [random, repeats] = purposes.map(|purpose| seed.generator(purpose));
        Ok(match self.retransmit {
            Some(0) => {
                return Err(Error::new("--retransmit 0 would repair losses in no time; give more than 0 ms"));
            }
            Some(_) if probability == 1.0 => {
                return Err(Error::new(
                    "--retransmit cannot repair a loss of everything; give a loss of less than 1",
                ));
            }
            Some(repeat) if probability > 0.0 => {
                let order = if self.retransmit_reorder { Order::Any } else { Order::OfArrival };
                let persistence = Persistence { repeat, tries: self.retransmit_tries, order };
                Box::new(Retransmission::new(probability, persistence, random, repeats, observers.clone()))
            }
            _ => Box::new(Loss::new(self.model(probability)?, random, observers.clone())),
        })
    }

    fn model(&self, probability: f64) -> Result<LossModel> {
        match (self.burst, self.gilbert_elliott) {
            _ if probability == 0.0 => Ok(LossModel::Independent { probability }),
            (Some(packets), _) => LossModel::bursts(probability, packets).ok_or_else(|| {
                Error::new(format!(
                    "bursts of {packets} packets cannot make up a loss of {probability}; give longer bursts"
                ))
            }),
            (None, Some(model)) => Ok(model),
            (None, None) => Ok(LossModel::Independent { probability }),
        }
    }
}

fn parse_gilbert_elliott(text: &str) -> Result<LossModel> {
    let numbers: Vec<f64> = text.split(',').map(parse_probability).collect::<Result<_>>()?;
    match numbers[..] {
        [good_to_bad, bad_to_good, loss_in_bad, loss_in_good] => {
            Ok(LossModel::GilbertElliott { good_to_bad, bad_to_good, loss_in_bad, loss_in_good })
        }
        _ => Err(Error::new(format!("'{text}' is not four probabilities separated by commas"))),
    }
}

/// The options of `mm-net` for loss.
#[derive(Args, Debug)]
#[command(next_help_heading = "Loss")]
pub struct NetLoss {
    /// Probability with which a packet is dropped, in each direction
    #[arg(long, value_name = "P", value_parser = parse_probability)]
    loss: Option<f64>,

    /// Probability of loss from inside to outside
    #[arg(long, value_name = "P", value_parser = parse_probability)]
    loss_up: Option<f64>,

    /// Probability of loss from outside to inside
    #[arg(long, value_name = "P", value_parser = parse_probability)]
    loss_down: Option<f64>,

    /// Probability that a packet or its answer is lost; each direction drops with 1-√(1-P)
    #[arg(long, value_name = "P", value_parser = parse_probability, conflicts_with = "loss")]
    round_trip_loss: Option<f64>,

    #[command(flatten)]
    options: LossOptions,
}

impl Impairment for NetLoss {
    fn build(&self, context: &mut NetworkContext<'_>) -> Result<Option<Duplex>> {
        let loss = self.loss.or(self.round_trip_loss.map(one_way_loss)).unwrap_or(0.0);
        let (uplink, downlink) = (self.loss_up.unwrap_or(loss), self.loss_down.unwrap_or(loss));
        let network = self.options.build(uplink, downlink, context.seed, &context.losses)?;
        let is_lossy = uplink > 0.0 || downlink > 0.0;
        Ok(is_lossy.then_some(network))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// For each of this many packets, whether it is lost.
    fn lost(model: LossModel, packets: usize) -> Vec<bool> {
        let mut loss = Loss::new(model, Random::from_seed(1), LossObservers::default());
        let mut lost = vec![true; packets];
        for number in 0..packets {
            loss.push(Packet::new(&[0; 20]), number as Nanos);
        }
        for departure in std::iter::from_fn(|| loss.pop(packets as Nanos)) {
            lost[departure.at as usize] = false;
        }
        lost
    }

    fn count(lost: &[bool]) -> usize {
        lost.iter().filter(|lost| **lost).count()
    }

    #[test]
    fn probability_0_keeps_all_and_1_none() {
        assert_eq!(count(&lost(LossModel::Independent { probability: 0.0 }, 1000)), 0);
        assert_eq!(count(&lost(LossModel::Independent { probability: 1.0 }, 1000)), 1000);
    }

    #[test]
    fn independent_loss_is_within_binomial_bounds() {
        let (packets, probability) = (100_000, 0.030_464);
        let lost = count(&lost(LossModel::Independent { probability }, packets)) as f64;
        let mean = packets as f64 * probability;
        let deviation = (mean * (1.0 - probability)).sqrt();
        assert!((lost - mean).abs() < 4.0 * deviation, "lost {lost}, expected {mean} ± {deviation}");
    }

    #[test]
    fn bursts_have_their_mean_length_and_make_up_the_loss() {
        let packets = 1_000_000;
        let lost = lost(LossModel::bursts(0.02, 4.0).unwrap(), packets);
        let bursts = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count();
        let mean_length = count(&lost) as f64 / bursts as f64;
        assert!((mean_length - 4.0).abs() < 0.15, "{mean_length}");
        let loss = count(&lost) as f64 / packets as f64;
        assert!((loss - 0.02).abs() < 0.001, "{loss}");
    }

    #[test]
    fn impossible_bursts_are_none() {
        assert_eq!(LossModel::bursts(0.1, 0.5), None);
        assert_eq!(LossModel::bursts(0.9, 2.0), None);
        assert_eq!(LossModel::bursts(1.0, 2.0), None);
    }
}
