//! The server's answers: recorded responses by the matching rule, and two generated ones.

use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode};

use crate::matcher::{Kind, Matcher, Request};
use crate::responses::{DEFAULT_DATE, DEFAULT_SERVER, RecordedResponse};

/// An answer to a request, sent after `wait`. `file` is that of the recorded response; a generated answer has none
/// (empty), and no wait.
pub struct Answer {
    pub kind: Kind,
    pub file: String,
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
    pub wait: Duration,
}

/// The responses, and which of them were served; shared by all addresses.
pub struct Replay {
    responses: Vec<RecordedResponse>,
    matcher: Mutex<Matcher>,
}

impl Replay {
    pub fn new(responses: Vec<RecordedResponse>) -> Self {
        let matcher = Mutex::new(Matcher::new(&responses));
        Self { responses, matcher }
    }

    pub fn answer_to(&self, request: &Request) -> Answer {
        let (kind, place) =
            self.matcher.lock().expect("nobody panics with it").find(request, &self.responses);
        let Some(place) = place else {
            return made_up(kind, request);
        };
        let recorded = &self.responses[place];
        Answer {
            kind,
            file: recorded.file.clone(),
            status: recorded.status,
            headers: recorded.headers.clone(),
            body: if request.method == "HEAD" { Bytes::new() } else { recorded.body.clone() },
            wait: recorded.wait,
        }
    }
}

fn made_up(kind: Kind, request: &Request) -> Answer {
    let mut headers = HeaderMap::new();
    if kind == Kind::Miss {
        headers.insert("content-length", HeaderValue::from_static("0"));
    }
    headers.insert("server", HeaderValue::from_static(DEFAULT_SERVER));
    headers.insert("date", HeaderValue::from_static(DEFAULT_DATE));
    if kind == Kind::Preflight {
        grant(&mut headers, request);
    }
    let status = if kind == Kind::Preflight { StatusCode::NO_CONTENT } else { StatusCode::NOT_FOUND };
    Answer { kind, file: String::new(), status, headers, body: Bytes::new(), wait: Duration::ZERO }
}

/// Grants a preflight (Fetch standard, section 3.3): permits what it asks for.
fn grant(headers: &mut HeaderMap, request: &Request) {
    let granted = [
        ("access-control-allow-origin", request.headers.get("origin").cloned()),
        ("access-control-allow-credentials", Some(HeaderValue::from_static("true"))),
        ("access-control-allow-methods", request.headers.get("access-control-request-method").cloned()),
        ("access-control-allow-headers", request.headers.get("access-control-request-headers").cloned()),
    ];
    for (name, value) in granted {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            headers.insert(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use http::{HeaderName, HeaderValue};
    use serde_json::Value;

    use super::*;
    use crate::responses::{authority_and_target, load};

    const REQUEST_HEADERS: [(&str, &str); 6] = [
        ("origin", "origin"),
        ("requested_method", "access-control-request-method"),
        ("requested_headers", "access-control-request-headers"),
        ("range", "range"),
        ("if_none_match", "if-none-match"),
        ("if_modified_since", "if-modified-since"),
    ];

    fn text<'a>(value: &'a Value, key: &str) -> &'a str {
        value[key].as_str().unwrap_or_default()
    }

    /// Writes the responses of a test case into a folder, each with its number as its body.
    fn write(recorded: &[Value], folder: &Path) {
        fs::create_dir(folder.join("host")).unwrap();
        for (number, exchange) in recorded.iter().enumerate() {
            let range = match text(exchange, "content_range") {
                "" => String::new(),
                range => format!("Content-Range: {range}\r\n"),
            };
            let head = format!(
                "HTTP/1.1 {} X\r\nX-Original-Url: {}\r\nX-Original-Method: {}\r\n{range}\r\n",
                exchange["status"],
                text(exchange, "url"),
                text(exchange, "method"),
            );
            fs::write(folder.join(format!("host/{number:05}-x")), head + &number.to_string()).unwrap();
        }
    }

    #[test]
    fn the_vectors_of_all_servers_hold() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/vectors/matching.json");
        let vectors: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
        let cases = vectors["cases"].as_array().unwrap();
        assert!(!cases.is_empty());
        // Imports change URLs that no browser sends, so leave these cases out; tests/servers/test_quinn_server.py has
        // them.
        let is_stored = |exchange: &Value| text(exchange, "url").bytes().all(|byte| byte.is_ascii_graphic());
        let stored = |case: &&Value| case["recorded"].as_array().unwrap().iter().all(is_stored);
        assert!(cases.iter().filter(stored).count() > cases.len() * 9 / 10);
        for case in cases.iter().filter(stored) {
            let folder = tempfile::tempdir().unwrap();
            write(case["recorded"].as_array().unwrap(), folder.path());
            let replay = Replay::new(load(folder.path()).unwrap());
            for request in case["requests"].as_array().unwrap() {
                let headers: HeaderMap = REQUEST_HEADERS
                    .iter()
                    .filter_map(|(key, name)| Some((name, request[key].as_str()?)))
                    .map(|(name, value)| {
                        (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
                    })
                    .collect();
                let url = text(request, "url").strip_prefix("https://").unwrap();
                let (authority, target) = authority_and_target(url);
                let method = text(request, "method");
                let answer = replay.answer_to(&Request { method, authority, target, headers: &headers });
                let file = request["answer"].as_u64().map(|number| format!("host/{number:05}-x"));
                let seen = (answer.kind.word(), answer.file, answer.status.as_u16());
                let expected = (
                    text(request, "kind"),
                    file.unwrap_or_default(),
                    u16::try_from(request["status"].as_u64().unwrap()).unwrap(),
                );
                assert_eq!(seen, expected, "{}: {request}", case["name"]);
            }
        }
    }
}
