//! The command to run inside a shell, and the addresses there.

use std::env;
use std::ffi::OsString;
use std::process::Command;

use clap::Args;
use nix::unistd::{Uid, User};

use crate::kernel::address_block::{AddressBlock, DEFAULT_POOL};

/// The inside of a shell: its addresses and its command.
#[derive(Args, Debug)]
#[command(next_help_heading = "Options")]
pub struct Inside {
    /// Range of IPv4 addresses for an outermost shell; nested shells use part of its range. IPv6 addresses, where the
    /// network outside has IPv6, are made from them. Commands inside reach the Internet if the network outside does;
    /// over IPv6 only if net.ipv6.conf.all.forwarding is already 1 there
    #[arg(long, value_name = "BLOCK", default_value_t = DEFAULT_POOL)]
    pub addresses: AddressBlock,

    /// Command to run inside, with its arguments [default: your login shell]
    #[arg(trailing_var_arg = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

impl Inside {
    /// The command, ready to start; the user's shell when none was given.
    #[must_use]
    pub fn command(&self) -> Command {
        match self.command.split_first() {
            Some((program, arguments)) => {
                let mut command = Command::new(program);
                command.args(arguments);
                command
            }
            None => Command::new(login_shell()),
        }
    }
}

fn login_shell() -> OsString {
    let from_passwd =
        || User::from_uid(Uid::current()).ok().flatten().map(|user| user.shell.into_os_string());
    env::var_os("SHELL")
        .or_else(from_passwd)
        .filter(|shell| !shell.is_empty())
        .unwrap_or_else(|| "/bin/sh".into())
}
