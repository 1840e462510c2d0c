//! Manual pages, generated from the text of `--help`.

use std::ffi::OsStr;
use std::io::{Error, ErrorKind, stdout};
use std::process::exit;

use clap::{Command, CommandFactory, Parser};
use clap_mangen::Man;

/// The argument that makes a program print its manual page. `--help` does not list it, since only installers need it.
const MAN_PAGE: &str = "--man-page";

/// The arguments of this program. If the manual page was requested, this prints it and ends the program instead.
pub fn parsed<Arguments: Parser + CommandFactory>() -> Arguments {
    print_man_page_if_asked(Arguments::command);
    Arguments::parse()
}

/// If the manual page was requested, print it and end the program; `command` describes the program's options.
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
