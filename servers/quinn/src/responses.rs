//! A recorded site's responses in memory: the files of a response folder, parsed once. This module does not depend on
//! QUIC.
//!
//! A folder may come from anybody: only ordinary files are opened, no more is read than a site may have, and each error
//! is one line that names the file. `servers/quic/recorded_responses.cc` refuses the same. This module also refuses
//! control characters in header fields, which HTTP/3 cannot carry (RFC 9114, section 10.3).

use std::cmp::min;
use std::fs::{self, File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};

// The limits of a site: `record/limits.py` has the same numbers, and a test compares them.
const MAX_HOSTS: usize = 2000;
const MAX_EXCHANGES: usize = 50_000;
const MAX_HEADER_FIELDS: usize = 1000;
const MAX_HEADER_BYTES: usize = 61_440;
const MAX_URL_BYTES: usize = 24_576;
const MAX_HEAD_BYTES: usize = 1_048_576;
const MAX_BODY_BYTES: u64 = 268_435_456;
const MAX_SITE_BYTES: u64 = 3_221_225_472;
const MAX_THINK_TIME_MS: f64 = 60_000.0;

/// Sent if a recording lacks this header field, as by the other servers.
pub const DEFAULT_SERVER: &str = "eyelevel";
pub const DEFAULT_DATE: &str = "Thu, 01 Jan 2026 00:00:00 GMT";

const ORIGINAL_URL: &str = "x-original-url";
const ORIGINAL_METHOD: &str = "x-original-method";
const ORIGINAL_WAIT: &str = "x-original-wait-ms";
/// Connection-specific fields may not occur in HTTP/3 (RFC 9114, section 4.2), and alt-svc would send the browser away
/// from the server under test. The first three are the testbed's own.
const NOT_REPLAYED: [&str; 11] = [
    ORIGINAL_URL,
    ORIGINAL_METHOD,
    ORIGINAL_WAIT,
    "alt-svc",
    "alternate-protocol",
    "connection",
    "keep-alive",
    "proxy-connection",
    "te",
    "transfer-encoding",
    "upgrade",
];
/// The overhead of each field: the colon, a space and the line end.
const FIELD_OVERHEAD: usize = 4;
const EXCERPT_BYTES: usize = 80;

/// One recorded exchange in the form in which it is replayed. The authority is in lower case, without `:443`. The
/// headers are those that are sent, in their order. `wait` is the recorded server's time to the first byte.
pub struct RecordedResponse {
    pub file: String,
    pub method: String,
    pub authority: String,
    pub path: String,
    pub query: String,
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Bytes,
    pub content_range: String,
    pub wait: Duration,
}

/// The responses in all files of all folders in `folder`, in recorded order, which is the order of the files' own
/// names.
pub fn load(folder: &Path) -> Result<Vec<RecordedResponse>> {
    let mut bytes = 0;
    let mut responses = Vec::new();
    for name in list(folder)? {
        let path = folder.join(&name);
        let response = read(&path, min(MAX_BODY_BYTES + MAX_HEAD_BYTES as u64, MAX_SITE_BYTES - bytes))
            .and_then(|content| {
                bytes += content.len() as u64;
                parse(content, name)
            })
            .with_context(|| format!("broken response file {}", path.display()))?;
        responses.push(response);
    }
    ensure!(!responses.is_empty(), "no response in {}/<host>/<file>", folder.display());
    Ok(responses)
}

/// The form in which authorities are compared: lower case, without user information and the default port.
pub fn normal_authority(authority: &str) -> String {
    let host = authority.rsplit('@').next().unwrap_or_default().to_ascii_lowercase();
    host.strip_suffix(":443").map(str::to_owned).unwrap_or(host)
}

/// Splits a URL without its scheme into authority and target; a fragment is dropped.
pub fn authority_and_target(url: &str) -> (&str, &str) {
    let url = url.split('#').next().unwrap_or_default();
    url.split_at(url.find(['/', '?']).unwrap_or(url.len()))
}

/// Splits a request target at the first "?"; an empty path is "/".
pub fn path_and_query(target: &str) -> (&str, &str) {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    (if path.is_empty() { "/" } else { path }, query)
}

/// The names of the files of every folder in `folder`, such as "host/00007-logo.png", in recorded order. Other entries,
/// such as a site's index, are skipped.
fn list(folder: &Path) -> Result<Vec<String>> {
    let mut files = Vec::new();
    let mut folders = 0;
    // In addition to the hosts' folders, `folder` contains the index and possibly a user's files.
    for host in names_in(folder, 2 * MAX_HOSTS)? {
        let path = folder.join(&host);
        if !path.is_dir() {
            continue;
        }
        folders += 1;
        ensure!(folders <= MAX_HOSTS, "{} has more than {MAX_HOSTS} hosts' folders", folder.display());
        let Some(host) = host.to_str().filter(|name| name.bytes().all(|byte| byte.is_ascii_graphic())) else {
            bail!("{}/{} is no name of a host's folder", folder.display(), excerpt(host.as_encoded_bytes()));
        };
        for name in names_in(&path, MAX_EXCHANGES)? {
            let Some(name) = name.to_str().filter(|name| is_response_name(name)) else {
                let name = excerpt(name.as_encoded_bytes());
                bail!("{}/{name} is no name of a response file", path.display());
            };
            files.push((name.to_owned(), format!("{host}/{name}")));
        }
        ensure!(
            files.len() <= MAX_EXCHANGES,
            "{} has more than {MAX_EXCHANGES} response files",
            folder.display()
        );
    }
    files.sort();
    Ok(files.into_iter().map(|(_, file)| file).collect())
}

/// The names of the entries of `folder`, unordered. An error if there are more than `max`.
fn names_in(folder: &Path, max: usize) -> Result<Vec<std::ffi::OsString>> {
    let fault = || format!("cannot read the folder {}", folder.display());
    let mut names = Vec::new();
    for entry in fs::read_dir(folder).with_context(fault)? {
        ensure!(names.len() < max, "{} has more than {max} entries", folder.display());
        names.push(entry.with_context(fault)?.file_name());
    }
    Ok(names)
}

/// Whether `name` has the form of a site's file names, such as "00007-logo.png". Such a name can neither break a line
/// of the request log nor lead to another folder.
fn is_response_name(name: &str) -> bool {
    let Some((order, rest)) = name.split_once('-') else { return false };
    order.len() == 5
        && order.bytes().all(|byte| byte.is_ascii_digit())
        && !rest.is_empty()
        && rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

/// The content of a file, which may be a link's target: an ordinary file of at most `max` bytes.
fn read(path: &Path, max: u64) -> Result<Vec<u8>> {
    // Without O_NONBLOCK, opening a pipe would wait; opening a device could have any effect.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new().read(true).custom_flags(flags).open(followed(path)?)?;
    let details = file.metadata()?;
    ensure!(details.is_file(), "it is no ordinary file");
    let size = details.len();
    ensure!(size <= max, "it has {size} bytes, more than the {max} that it may have");
    read_whole(&file, size)
}

fn read_whole(file: &File, size: u64) -> Result<Vec<u8>> {
    let mut content = Vec::with_capacity(usize::try_from(size)?);
    file.take(size).read_to_end(&mut content)?;
    ensure!(content.len() as u64 == size, "it became shorter");
    Ok(content)
}

/// The target of a link, if it is a path without further links. The replay makes such links to a site's files. A link
/// in the site itself could lead to any file of this machine, so it is refused.
fn followed(path: &Path) -> Result<PathBuf> {
    if !path.symlink_metadata()?.is_symlink() {
        return Ok(path.to_owned());
    }
    let target = fs::read_link(path)?;
    ensure!(target == path.canonicalize()?, "it is a link that leads to a link");
    Ok(target)
}

/// A header field as recorded; the name is in lower case.
struct Field<'a> {
    name: String,
    value: &'a [u8],
}

fn parse(content: Vec<u8>, file: String) -> Result<RecordedResponse> {
    let content = Bytes::from(content);
    let head_end = find(&content, b"\r\n\r\n").context("no blank line after the headers")?;
    ensure!(head_end <= MAX_HEAD_BYTES, "its header fields have more than {MAX_HEAD_BYTES} bytes");
    let head = &content[..head_end];
    ensure!(!has_stray_break(head), "a line break in its header fields");
    let mut lines = lines_of(head);
    let status =
        status_of(lines.next().unwrap_or_default()).context("it does not begin with a status line")?;
    ensure!((200..=599).contains(&status), "its status is none that can be replayed: {status}");
    let mut fields = fields_of(lines)?;
    for name in [ORIGINAL_URL, ORIGINAL_METHOD, ORIGINAL_WAIT, "content-length"] {
        // If a field occurred twice, other servers might use the other one.
        let times = fields.iter().filter(|field| field.name == name).count();
        ensure!(times <= 1, "it has {name} more than once");
    }
    let (authority, path, query) =
        parse_url(value(&fields, ORIGINAL_URL).context("it has no X-Original-Url")?)?;
    let method = value(&fields, ORIGINAL_METHOD).context("it has no X-Original-Method")?;
    ensure!(is_method(method), "its X-Original-Method is none of a page: {}", excerpt(method));
    let method = String::from_utf8_lossy(method).into_owned();
    let wait = value(&fields, ORIGINAL_WAIT).unwrap_or(b"0");
    let wait =
        think_time(wait).with_context(|| format!("its X-Original-Wait-Ms is no time: {}", excerpt(wait)))?;
    let mut body = content.slice(head_end + 4..);
    // These responses end after the headers, whatever the headers say (RFC 9110, section 6.4.1).
    if [204, 304].contains(&status) {
        body = Bytes::new();
        fields.retain(|field| field.name != "content-length");
    }
    if let Some(length) = value(&fields, "content-length").filter(|_| method != "HEAD") {
        // In HTTP/3, a message with another length is malformed, and the browser would drop it.
        ensure!(
            length == body.len().to_string().as_bytes(),
            "its content-length is {}, its body has {} bytes",
            excerpt(length),
            body.len()
        );
    }
    let content_range = String::from_utf8_lossy(value(&fields, "content-range").unwrap_or_default());
    Ok(RecordedResponse {
        file,
        method,
        authority,
        path,
        query,
        status: StatusCode::from_u16(status)?,
        content_range: content_range.into_owned(),
        headers: sent_headers(&fields)?,
        body,
        wait,
    })
}

/// The headers in the order in which NGINX sends them on the TCP side: first those that NGINX stores separately,
/// including an absolute location, then the others as recorded. The map keeps fields of the same name together.
fn sent_headers(fields: &[Field]) -> Result<HeaderMap> {
    let absolute = value(fields, "location").is_some_and(|location| !location.starts_with(b"/"));
    let first = ["content-type", "content-length", "location"];
    let first = &first[..if absolute { 3 } else { 2 }];
    let mut headers = HeaderMap::with_capacity(fields.len() + 2);
    let mut add = |field: &Field| -> Result<()> {
        let value = HeaderValue::from_bytes(field.value)
            .with_context(|| format!("{} has characters that HTTP/3 cannot carry", field.name))?;
        headers.append(HeaderName::from_bytes(field.name.as_bytes())?, value);
        Ok(())
    };
    for name in first {
        fields.iter().filter(|field| field.name == *name).try_for_each(&mut add)?;
    }
    let rest = fields.iter().filter(|field| !first.contains(&field.name.as_str()));
    rest.filter(|field| !NOT_REPLAYED.contains(&field.name.as_str())).try_for_each(&mut add)?;
    for (name, value) in [("server", DEFAULT_SERVER), ("date", DEFAULT_DATE)] {
        if !headers.contains_key(name) {
            headers.insert(name, HeaderValue::from_static(value));
        }
    }
    Ok(headers)
}

/// The header fields in the lines after the status line.
fn fields_of<'a>(lines: impl Iterator<Item = &'a [u8]>) -> Result<Vec<Field<'a>>> {
    let mut fields = Vec::new();
    let (mut count, mut bytes) = (0, 0);
    for line in lines {
        let colon = line.iter().position(|byte| *byte == b':').filter(|colon| is_token(&line[..*colon]));
        let Some(colon) = colon else { bail!("a header line without a name: {}", excerpt(line)) };
        let name = String::from_utf8_lossy(&line[..colon]).to_ascii_lowercase();
        let value = without_padding(&line[colon + 1..]);
        if !NOT_REPLAYED[..3].contains(&name.as_str()) {
            count += 1;
            bytes += name.len() + value.len() + FIELD_OVERHEAD;
        }
        ensure!(
            count <= MAX_HEADER_FIELDS && bytes <= MAX_HEADER_BYTES,
            "it has more than {MAX_HEADER_FIELDS} header fields, or {MAX_HEADER_BYTES} bytes of them"
        );
        fields.push(Field { name, value });
    }
    Ok(fields)
}

/// The first value of a field.
fn value<'a>(fields: &[Field<'a>], name: &str) -> Option<&'a [u8]> {
    fields.iter().find(|field| field.name == name).map(|field| field.value)
}

/// The authority, the path and the query of the URL of a recorded request.
fn parse_url(url: &[u8]) -> Result<(String, String, String)> {
    ensure!(
        url.len() <= MAX_URL_BYTES,
        "its X-Original-Url has {} bytes, more than {MAX_URL_BYTES}",
        url.len()
    );
    ensure!(url.iter().all(u8::is_ascii_graphic), "its X-Original-Url is no URL: {}", excerpt(url));
    let text = String::from_utf8_lossy(url);
    let Some(rest) = text.strip_prefix("https://") else {
        bail!("its X-Original-Url is not https: {}", excerpt(url));
    };
    let (authority, target) = authority_and_target(rest);
    let authority = authority.to_ascii_lowercase();
    let authority = authority.strip_suffix(":443").unwrap_or(&authority);
    ensure!(is_authority(authority), "its X-Original-Url has no host that can be served: {}", excerpt(url));
    let (path, query) = path_and_query(target);
    Ok((authority.into(), path.into(), query.into()))
}

/// Whether this is the name of a host, or of a host and a port, in lower case.
fn is_authority(text: &str) -> bool {
    let (host, port) = text.split_once(':').unwrap_or((text, "443"));
    (1..=5).contains(&port.len())
        && port.bytes().all(|byte| byte.is_ascii_digit())
        && !host.is_empty()
        && !host.starts_with('.')
        && !host.contains("..")
        && host
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b".-_".contains(&byte))
}

/// Whether an import accepts this method: those of pages (Fetch standard, section 2.2.1), in letters that NGINX
/// accepts.
fn is_method(text: &[u8]) -> bool {
    !text.is_empty()
        && ![b"CONNECT".as_slice(), b"TRACE", b"TRACK"].contains(&text)
        && text.iter().all(|byte| byte.is_ascii_uppercase() || b"_-".contains(byte))
}

/// Whether this is a field name (RFC 9110, section 5.6.2).
fn is_token(text: &[u8]) -> bool {
    !text.is_empty()
        && text.iter().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte))
}

/// The status in a status line: "HTTP/1.1 200 OK" gives 200.
fn status_of(line: &[u8]) -> Option<u16> {
    let line = line.strip_prefix(b"HTTP/")?;
    let rest = &line[line.iter().position(|byte| *byte == b' ')? + 1..];
    let (status, end) = rest.split_at_checked(3)?;
    let sound = status.iter().all(u8::is_ascii_digit) && (end.is_empty() || end[0] == b' ');
    sound.then(|| std::str::from_utf8(status).ok()?.parse().ok()).flatten()
}

/// A time in milliseconds, as importers write it ("12", "12.5", "1e-05"), limited to what a server may take.
fn think_time(text: &[u8]) -> Option<Duration> {
    let text = std::str::from_utf8(text).ok()?;
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (number, exponent) = text.split_once('e').unwrap_or((text, "0"));
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    let sound = is_digits(whole) && is_digits(fraction) && is_digits(exponent);
    let ms: f64 = sound.then(|| text.parse().ok()).flatten()?;
    Some(Duration::from_secs_f64(ms.min(MAX_THINK_TIME_MS) / 1e3))
}

/// Whether a line contains a break other than CRLF. NGINX would end the line there, HTTP/3 would not.
fn has_stray_break(head: &[u8]) -> bool {
    lines_of(head).any(|line| line.iter().any(|byte| b"\r\n\0".contains(byte)))
}

fn lines_of(head: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(head);
    std::iter::from_fn(move || {
        let text = rest?;
        let end = find(text, b"\r\n");
        rest = end.map(|end| &text[end + 2..]);
        Some(&text[..end.unwrap_or(text.len())])
    })
}

/// Whitespace around the value is not part of it (RFC 9110, section 5.6.3).
fn without_padding(text: &[u8]) -> &[u8] {
    let is_padding = |byte: &u8| b" \t".contains(byte);
    let first = text.iter().position(|byte| !is_padding(byte)).unwrap_or(text.len());
    let end = text.iter().rposition(|byte| !is_padding(byte)).map_or(first, |last| last + 1);
    &text[first..end]
}

fn find(text: &[u8], wanted: &[u8]) -> Option<usize> {
    text.windows(wanted.len()).position(|window| window == wanted)
}

/// The beginning of a text from a stranger, in printable form, for a message.
pub fn excerpt(text: &[u8]) -> String {
    let more = if text.len() > EXCERPT_BYTES { "..." } else { "" };
    format!("{}{more}", text[..min(text.len(), EXCERPT_BYTES)].escape_ascii())
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = "X-Original-Url: https://a.example/\r\nX-Original-Method: GET\r\n";

    fn parsed(content: &str) -> Result<RecordedResponse> {
        parse(content.as_bytes().to_vec(), "a.example/00000-x".into())
    }

    fn sent(fields: &str) -> Vec<String> {
        let response = parsed(&format!("HTTP/1.1 200 OK\r\n{OURS}{fields}\r\n12345")).unwrap();
        let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        response.headers.iter().map(|(name, value)| format!("{name}: {}", text(value))).collect()
    }

    #[test]
    fn headers_are_sent_in_nginx_order_and_as_recorded() {
        let recorded = "Set-Cookie: a=1\r\nX-Frame-Options: DENY\r\nLocation: https://b.example/\r\n\
            Content-Length: 5\r\nContent-Type: text/html\r\nSet-Cookie: b=2\r\nAlt-Svc: h3=\":443\"\r\n\
            Connection: close\r\nServer:  Apache\t\r\n";
        assert_eq!(
            sent(recorded),
            [
                "content-type: text/html",
                "content-length: 5",
                "location: https://b.example/",
                "set-cookie: a=1",
                "set-cookie: b=2",
                "x-frame-options: DENY",
                "server: Apache",
                "date: Thu, 01 Jan 2026 00:00:00 GMT",
            ]
        );
        assert_eq!(sent("X: 1\r\nLocation: /relative\r\n")[..2], ["x: 1", "location: /relative"]);
    }

    #[test]
    fn what_cannot_be_replayed_is_refused_in_one_line() {
        for (content, reason) in [
            (format!("HTTP/1.1 200 OK\r\n{OURS}"), "no blank line after the headers"),
            (format!("HTTP/1.1 101 OK\r\n{OURS}\r\n"), "its status is none that can be replayed: 101"),
            (format!("HTTP/1.1 200 OK\r\n{OURS}X: a\nY: b\r\n\r\n"), "a line break in its header fields"),
            (
                format!("HTTP/1.1 200 OK\r\n{OURS}X: \x01\r\n\r\n"),
                "x has characters that HTTP/3 cannot carry",
            ),
            (
                format!("HTTP/1.1 200 OK\r\n{OURS}Content-Length: 5\r\n\r\n1234"),
                "its content-length is 5, its body has 4 bytes",
            ),
        ] {
            let error = format!("{:#}", parsed(&content).err().unwrap());
            assert!(error.starts_with(reason) && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn times_are_those_that_importers_write() {
        let ms = |text: &str| think_time(text.as_bytes()).map(|time| time.as_secs_f64() * 1e3);
        assert_eq!(ms("12.5"), Some(12.5));
        assert_eq!(ms("1e-05"), Some(1e-5));
        assert_eq!(ms("1e+305"), Some(60_000.0));
        for text in ["", "-1", "nan", "1_0", "1.", ".5", "e5", "inf"] {
            assert_eq!(ms(text), None, "{text}");
        }
    }
}
