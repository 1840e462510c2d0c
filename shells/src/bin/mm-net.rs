//! `mm-net`: delay, link and loss in one hop.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgMatches, Args, Command, FromArgMatches};
use shells::arguments::{Inside, SeedOption, print_man_page_if_asked};
use shells::element::{IMPAIRMENTS, NetworkContext, add_options, build_network};
use shells::error::{Attempt, Error, Result};
use shells::log::Outputs;
use shells::shell::{Shell, exit_code, finish};
use shells::time::now;

const ABOUT: &str = "Run a command in an emulated network: delay, link and loss in one hop";
const LONG_ABOUT: &str = "Run a command in an emulated network: delay, link and loss in one hop\n\n\
    Does to packets what mm-delay, mm-link and mm-loss nested in this order do, in one process.";

/// The options that belong to no impairment.
#[derive(Args)]
struct CommonOptions {
    #[command(flatten)]
    seed: SeedOption,

    /// At the end, write the means by which the emulation kept time to this file: real-time priority, kernel stamps (of
    /// the arrival of packets), both, or ordinary priority
    #[arg(long, value_name = "FILE")]
    timekeeping: Option<PathBuf>,

    #[command(flatten)]
    inside: Inside,
}

fn command() -> Command {
    let command = add_options(IMPAIRMENTS, Command::new("mm-net"));
    let command = CommonOptions::augment_args(command);
    command.version(env!("CARGO_PKG_VERSION")).about(ABOUT).long_about(LONG_ABOUT)
}

fn run(matches: &ArgMatches) -> Result<ExitCode> {
    let options = CommonOptions::from_arg_matches(matches).map_err(|error| Error::new(error.to_string()))?;
    let timekeeping = options.timekeeping.as_deref();
    let mut file = timekeeping
        .map(|path| File::create(path).attempt(|| format!("write {}", path.display())))
        .transpose()?;
    let mut outputs = Outputs::default();
    let mut context = NetworkContext {
        start: now(),
        seed: options.seed.seed(),
        rtt: None,
        outputs: &mut outputs,
        losses: Default::default(),
    };
    let network = build_network(IMPAIRMENTS, matches, &mut context)?;
    let shell = Shell { kind: "net", label: "net".to_owned(), network, outputs };
    let report = shell.run_to_report(&options.inside)?;
    if let Some(file) = &mut file {
        writeln!(file, "{}", report.timekeeping).attempt(|| "write the file of --timekeeping")?;
    }
    Ok(exit_code(report))
}

fn main() -> ExitCode {
    print_man_page_if_asked(command);
    finish(run(&command().get_matches()))
}
