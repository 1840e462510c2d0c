//! The impairments of `mm-net`: the options and the elements of each.

use clap::{ArgMatches, Args, Command};

use super::{Duplex, LossObservers};
use crate::error::{Error, Result};
use crate::log::Outputs;
use crate::random::Seed;
use crate::time::Nanos;

/// The state that all impairments of a network share while they are built.
pub struct NetworkContext<'a> {
    /// When the network begins.
    pub start: Nanos,
    pub seed: Seed,
    /// The round-trip time of a packet that never waits, once an impairment has set it.
    pub rtt: Option<Nanos>,
    /// Where logs are created.
    pub outputs: &'a mut Outputs,
    /// The observers of losses, for the uplink and the downlink; set once the link has made its logs.
    pub losses: [LossObservers; 2],
}

/// The options of an impairment, as clap describes them, and what they build.
pub trait Impairment: Args {
    /// Both directions; `None` if no option asks for this impairment.
    fn build(&self, context: &mut NetworkContext<'_>) -> Result<Option<Duplex>>;
}

/// An impairment as `mm-net` sees it: options to add to the command line, and both directions to build from them.
#[derive(Clone, Copy)]
pub struct Registration {
    add_options: fn(Command) -> Command,
    build: fn(&ArgMatches, &mut NetworkContext<'_>) -> Result<Option<Duplex>>,
}

impl Registration {
    #[must_use]
    pub const fn of<I: Impairment>() -> Self {
        Self { add_options: I::augment_args, build: build::<I> }
    }
}

fn build<I: Impairment>(matches: &ArgMatches, context: &mut NetworkContext<'_>) -> Result<Option<Duplex>> {
    I::from_arg_matches(matches).map_err(|error| Error::new(error.to_string()))?.build(context)
}

/// Add the options of these impairments to a command line.
#[must_use]
pub fn add_options(impairments: &[Registration], command: Command) -> Command {
    impairments.iter().fold(command, |command, impairment| (impairment.add_options)(command))
}

/// Build the impairments for which the command line asks, in the order in which their shells would be nested.
pub fn build_network(
    impairments: &[Registration],
    matches: &ArgMatches,
    context: &mut NetworkContext<'_>,
) -> Result<Duplex> {
    let stack: Result<Vec<_>> = impairments
        .iter()
        .filter_map(|impairment| (impairment.build)(matches, context).transpose())
        .collect();
    Ok(Duplex::stack(stack?))
}
