//! What the shells' command lines have in common.

use std::env;
use std::ffi::OsString;
use std::process::Command;

use clap::Args;

/// The command to run inside.
#[derive(Args, Debug)]
pub struct Inside {
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
            None => Command::new(env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into())),
        }
    }
}
