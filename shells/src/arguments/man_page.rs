//! Manual pages, made of what `--help` says.

use std::ffi::OsStr;
use std::io::{Error, ErrorKind, stdout};
use std::process::exit;

use clap::{Command, CommandFactory, Parser};
use clap_mangen::Man;

/// The one argument by which a program prints its manual page. `--help` does not list it: it is for who installs.
const MAN_PAGE: &str = "--man-page";

/// The arguments of this program; or its manual page is printed, and it ends.
pub fn parsed<Arguments: Parser + CommandFactory>() -> Arguments {
    print_man_page_if_asked(Arguments::command);
    Arguments::parse()
}

/// If it was asked for, print the manual page of this program, which takes what `command` says, and end.
pub fn print_man_page_if_asked(command: impl FnOnce() -> Command) {
    let mut arguments = std::env::args_os().skip(1);
    if arguments.next().as_deref() == Some(OsStr::new(MAN_PAGE)) && arguments.next().is_none() {
        exit(match Man::new(command()).render(&mut stdout()) {
            Ok(()) => 0,
            Err(error) => status_of(&error),
        });
    }
}

fn status_of(error: &Error) -> i32 {
    if error.kind() != ErrorKind::BrokenPipe {
        eprintln!("the manual page cannot be written: {error}");
    }
    1
}
