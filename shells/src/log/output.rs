//! Files that are written while packets pass; their errors are kept and reported later.

use std::cell::RefCell;
use std::fmt::Arguments;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::meter::Meter;
use crate::error::{Attempt, Error, Result};
use crate::time::Nanos;

/// A file of [`Outputs`].
///
/// Writing reports no errors; [`Outputs::flush`] returns the first one.
#[derive(Clone)]
pub struct Output(Rc<RefCell<Inner>>);

struct Inner {
    path: PathBuf,
    file: BufWriter<File>,
    failure: Option<io::Error>,
}

impl Output {
    /// Write a line.
    pub fn line(&self, text: Arguments<'_>) {
        self.write(|file| writeln!(file, "{text}"));
    }

    /// Write bytes.
    pub fn bytes(&self, bytes: &[u8]) {
        self.write(|file| file.write_all(bytes));
    }

    fn write(&self, act: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) {
        let mut inner = self.0.borrow_mut();
        if let Err(error) = act(&mut inner.file) {
            inner.failure.get_or_insert(error);
        }
    }

    /// The path of the file.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.0.borrow().path.clone()
    }
}

/// Everything that a shell writes while packets pass.
#[derive(Default)]
pub struct Outputs {
    files: Vec<Output>,
    meter: Option<Meter>,
}

impl Outputs {
    /// Create a file; an existing one is replaced.
    pub fn create(&mut self, path: &Path) -> Result<Output> {
        let file = File::create(path).attempt(|| format!("create the log {}", path.display()))?;
        let inner = Inner { path: path.to_owned(), file: BufWriter::new(file), failure: None };
        let output = Output(Rc::new(RefCell::new(inner)));
        self.files.push(output.clone());
        Ok(output)
    }

    /// Show a meter on stderr.
    pub fn show(&mut self, meter: Meter) {
        self.meter = Some(meter);
    }

    /// When the next output is due.
    #[must_use]
    pub fn next_due(&self) -> Option<Nanos> {
        self.meter.as_ref().map(Meter::next)
    }

    /// Write the output that is due.
    pub fn show_due(&mut self, now: Nanos) {
        if let Some(meter) = &self.meter {
            meter.show(now, &mut io::stderr());
        }
    }

    /// Write all buffers to their files. Returns the first error that occurred.
    pub fn flush(&mut self) -> Result<()> {
        for output in &self.files {
            let mut inner = output.0.borrow_mut();
            let flushed = match inner.failure.take() {
                Some(error) => Err(error),
                None => inner.file.flush(),
            };
            flushed.map_err(|error| {
                Error::new(format!("cannot write the log {}: {error}", inner.path.display()))
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flush_returns_the_error_of_a_full_disk() {
        let mut outputs = Outputs::default();
        let output = outputs.create(Path::new("/dev/full")).unwrap();
        output.line(format_args!("{}", "x".repeat(100_000)));
        output.line(format_args!("more"));
        let error = outputs.flush().unwrap_err().to_string();
        assert!(error.contains("/dev/full") && error.contains("space"), "{error}");
    }
}
