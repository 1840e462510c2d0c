//! The options of a loss.

use clap::Args;

use crate::element::{Duplex, Element, Loss, LossModel};
use crate::error::{Error, Result};
use crate::random::Seed;
use crate::units::parse_probability;

/// Loss in bursts.
#[derive(Args, Debug)]
#[command(next_help_heading = "Loss")]
pub struct LossArguments {
    /// Lose packets in bursts of this many on average, instead of independently
    #[arg(long, value_name = "PACKETS", conflicts_with = "gilbert_elliott")]
    burst: Option<f64>,

    /// Lose packets after this model instead of with one probability: of becoming bad, of becoming good again, of
    /// loss while bad, and of loss while good; applies where any loss is asked for
    #[arg(long, value_name = "P,R,B,G", value_parser = parse_gilbert_elliott)]
    gilbert_elliott: Option<LossModel>,
}

/// The probability of loss in each direction.
#[derive(Clone, Copy, Debug)]
pub struct LossParts {
    pub uplink: f64,
    pub downlink: f64,
    pub seed: Seed,
}

impl LossArguments {
    /// Build both directions.
    pub fn build(&self, parts: LossParts) -> Result<Duplex> {
        let element = |probability, purpose| -> Result<Box<dyn Element>> {
            Ok(Box::new(Loss::new(self.model(probability)?, parts.seed.generator(purpose))))
        };
        Ok(Duplex {
            uplink: element(parts.uplink, "loss uplink")?,
            downlink: element(parts.downlink, "loss downlink")?,
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
