//! Copies packets between two TUN devices, and does nothing else. The benchmark takes its performance as the best that
//! any emulator over TUN could reach.
//!
//! Usage: tun-copy COMMAND…

use std::os::fd::AsFd;
use std::process::ExitCode;

use clap::Parser;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use shells::arguments::Inside;
use shells::error::{Attempt, Result};
use shells::kernel::{LARGEST_READ, Supervisor, open_tun_pair};
use shells::shell::finish;

#[derive(Parser)]
struct Arguments {
    #[command(flatten)]
    inside: Inside,
}

fn run(arguments: &Arguments) -> Result<ExitCode> {
    let pair = open_tun_pair("copy", arguments.inside.addresses)?;
    let supervisor = Supervisor::start(&pair.inside()?, arguments.inside.command())?;
    let mut buffer = vec![0; LARGEST_READ];
    loop {
        let mut events = [&pair.inner, &pair.outer].map(|tun| PollFd::new(tun.as_fd(), PollFlags::POLLIN));
        // The end of the command does not wake poll; thanks to the timeout, it is noticed within 50 ms.
        poll(&mut events, PollTimeout::from(50u8)).attempt(|| "wait for packets")?;
        for (from, to) in [(&pair.inner, &pair.outer), (&pair.outer, &pair.inner)] {
            while let Some(packet) = from.read(&mut buffer)? {
                to.write(&packet);
            }
        }
        if let Some(status) = supervisor.ended() {
            return Ok(ExitCode::from(status as u8));
        }
    }
}

fn main() -> ExitCode {
    finish(run(&Arguments::parse()))
}
