//! The only kind of error: a line that says which attempt failed, where, and what to do.

use std::fmt::{self, Display};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error(String);

pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub fn new(message: impl Into<String>) -> Self {
        Self(message.into())
    }
}

impl Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Error {}

/// Turns errors of other kinds into this one, with the attempt that failed.
pub trait Attempt<T> {
    /// The error becomes "cannot {what}: {cause}".
    fn attempt<W: Display>(self, what: impl FnOnce() -> W) -> Result<T>;
}

impl<T, E: Display> Attempt<T> for std::result::Result<T, E> {
    fn attempt<W: Display>(self, what: impl FnOnce() -> W) -> Result<T> {
        self.map_err(|cause| Error(format!("cannot {}: {cause}", what())))
    }
}
