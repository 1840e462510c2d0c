//! How well a recorded response fits a request, apart from its URL: by its range, and by whether the client already has
//! the resource. `servers/fit.py` and `servers/quic/fit.cc` are the same.

/// The fits, the best first.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Fit {
    /// The requested range; without a requested range, a response that is not partial.
    AsAsked,
    /// Only the beginning of the requested range.
    Shorter,
    /// The whole resource, although a range was requested (RFC 9110, section 14.2).
    Whole,
    /// Another range; a partial response, although no range was requested; a 304, although the client has no copy.
    Not,
}

/// `range` is the request's Range, empty if there is none; `conditional`: whether it has If-None-Match or
/// If-Modified-Since. `status` and `content_range` are the response's.
pub fn fit_of(range: &str, conditional: bool, status: u16, content_range: &str) -> Fit {
    match status {
        304 if conditional => Fit::AsAsked,
        304 => Fit::Not,
        206 if range.is_empty() => Fit::Not,
        206 => fit_of_part(range, content_range).unwrap_or(Fit::Not),
        _ if range.is_empty() => Fit::AsAsked,
        _ => Fit::Whole,
    }
}

/// The fit of a response to one range; for a request with several ranges, no part fits. `None` if the fit cannot be
/// determined.
fn fit_of_part(range: &str, content_range: &str) -> Option<Fit> {
    let (place, total) = content_range.strip_prefix("bytes ")?.split_once('/')?;
    let (first, last) = place.split_once('-')?;
    let (first, last) = (number(first)?, number(last)?);
    let total = if total == "*" { None } else { Some(number(total)?) };
    let to_end = total == Some(last + 1);
    let (from, until) = range.strip_prefix("bytes=")?.split_once('-')?;
    if from.is_empty() {
        let fits = to_end && first == (last + 1).saturating_sub(number(until)?);
        return fits.then_some(Fit::AsAsked);
    }
    if number(from)? != first {
        return None;
    }
    if until.is_empty() {
        return Some(if to_end || total.is_none() { Fit::AsAsked } else { Fit::Shorter });
    }
    let until = number(until)?;
    match last {
        _ if last > until => None,
        _ if last == until || to_end => Some(Fit::AsAsked),
        _ => Some(Fit::Shorter),
    }
}

/// A number of only digits, at most as many as any file's length has; `None` for anything else.
fn number(text: &str) -> Option<u64> {
    let sound = text.len() <= 18 && text.bytes().all(|byte| byte.is_ascii_digit());
    sound.then(|| text.parse().ok()).flatten()
}
