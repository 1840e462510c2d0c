//! The matching rule on the command line, without a client; `quinn_server --match` prints the same as `quic_server
//! --match`.

use std::io::{BufRead, Write};

use anyhow::{Context, Result};
use http::{HeaderMap, HeaderValue};

use crate::matcher::Request;
use crate::replay::Replay;
use crate::responses::{authority_and_target, excerpt};

/// The header fields of a request that follow its method and its URL, in order.
const FIELDS: [&str; 6] = [
    "origin",
    "access-control-request-method",
    "access-control-request-headers",
    "range",
    "if-none-match",
    "if-modified-since",
];

/// For each of `requests`, one per line, writes its kind, its file, its status and the length of its body, separated by
/// tabs; then the headers as they would be sent, each on a line that begins with a tab.
pub fn answer(requests: impl BufRead, replay: &Replay, mut answers: impl Write) -> Result<()> {
    for line in requests.lines() {
        let line = line?;
        let broken = || format!("not METHOD<TAB>https://…: {}", excerpt(line.as_bytes()));
        let (method, rest) = line.split_once('\t').with_context(broken)?;
        let (url, rest) = rest.split_once('\t').unwrap_or((rest, ""));
        let (authority, target) = authority_and_target(url.strip_prefix("https://").with_context(broken)?);
        let mut headers = HeaderMap::new();
        for (name, value) in FIELDS.into_iter().zip(rest.split('\t')) {
            headers.insert(name, HeaderValue::from_str(value).with_context(broken)?);
        }
        let answer = replay.answer_to(&Request { method, authority, target, headers: &headers });
        let (kind, status, bytes) = (answer.kind.word(), answer.status.as_u16(), answer.body.len());
        writeln!(answers, "{kind}\t{}\t{status}\t{bytes}", answer.file)?;
        for (name, value) in &answer.headers {
            writeln!(answers, "\t{name}: {}", String::from_utf8_lossy(value.as_bytes()))?;
        }
    }
    Ok(())
}
