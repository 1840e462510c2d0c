//! `film-recorder`: films an X display by the DAMAGE extension.

use std::fs::File;
use std::io::stdout;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use film_recorder::error::{Attempt, Error, Result};
use film_recorder::log::LONGEST_EDGE;
use film_recorder::record::record;
use film_recorder::stream::stream;

/// Film an X display: a picture for each change, with its time
#[derive(Parser)]
#[command(name = "film-recorder", version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Film the display DISPLAY until standard input ends or contains 'q', or until SIGINT, SIGTERM or SIGHUP
    ///
    /// Prints "Press [q] to stop" to standard error when the first picture is stored.
    Record {
        /// The part to film: a rectangle of this many pixels at the top left
        #[arg(long, value_name = "WxH", value_parser = parse_size)]
        size: (u16, u16),

        /// The file to write
        log: PathBuf,
    },

    /// Write a film to standard output, as Matroska with uncompressed pictures, whose times are exact to the µs
    Stream {
        /// Show the last picture again when the film ends, so that players show it until then
        #[arg(long)]
        to_end: bool,

        /// The file that 'record' has written
        log: PathBuf,
    },
}

fn main() -> ExitCode {
    match run(&Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("film-recorder: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: &Command) -> Result<()> {
    match command {
        Command::Record { size: (width, height), log } => record(*width, *height, log),
        Command::Stream { to_end, log } => {
            let name = log.display().to_string();
            let file = File::open(log).attempt(|| format!("read the log {name}"))?;
            // Rust's own standard output would search the pixels for ends of lines.
            let out = stdout().as_fd().try_clone_to_owned().attempt(|| "write to standard output")?;
            stream(file, &name, *to_end, File::from(out))
        }
    }
}

fn parse_size(text: &str) -> Result<(u16, u16)> {
    let edge = |text: &str| text.parse().ok().filter(|edge| (1..=LONGEST_EDGE).contains(edge));
    text.split_once('x').and_then(|(width, height)| edge(width).zip(edge(height))).ok_or_else(|| {
        Error::new(format!("give a width and a height from 1 to {LONGEST_EDGE} pixels, such as 1366x768"))
    })
}
