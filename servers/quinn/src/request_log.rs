//! One line per request: kind, method, URL, file of the response, separated by tabs.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};

use crate::matcher::Request;
use crate::replay::Answer;

/// Appends to a file, or does nothing.
pub struct RequestLog(Option<File>);

impl RequestLog {
    pub fn open(path: Option<&Path>) -> Result<Self> {
        let open = |path: &Path| {
            let fault = || format!("cannot write the request log {}", path.display());
            OpenOptions::new().append(true).create(true).open(path).with_context(fault)
        };
        Ok(Self(path.map(open).transpose()?))
    }

    pub fn add(&self, request: &Request, answer: &Answer) {
        if let Some(mut file) = self.0.as_ref() {
            let Request { method, authority, target, .. } = request;
            let line =
                format!("{}\t{method}\thttps://{authority}{target}\t{}\n", answer.kind.word(), answer.file);
            // A single write, so that lines do not mix. A full disk must not end the page load.
            let _ = file.write_all(line.as_bytes());
        }
    }
}
