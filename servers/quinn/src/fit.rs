//! How well a recorded response fits a request by what its URL does not say: a range, and whether the client has the
//! resource already. `servers/fit.py` and `servers/quic/fit.cc` are the same.

/// Best first.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Fit {
    /// The range that was asked for; or no range was, and it is none.
    AsAsked,
    /// The range's beginning.
    Shorter,
    /// Everything, though a range was asked for (RFC 9110, section 14.2).
    Whole,
    /// Another range; a part where everything was asked for; a 304 for a client that has nothing.
    Not,
}

/// `range` is the request's Range, empty if there is none; `conditional` whether it has If-None-Match or
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

/// The fit of a response to one range; a client that asks for several at once is answered as if none fitted.
/// `None` if it cannot be determined.
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

/// Digits alone, as many as any file's length has.
fn number(text: &str) -> Option<u64> {
    let sound = text.len() <= 18 && text.bytes().all(|byte| byte.is_ascii_digit());
    sound.then(|| text.parse().ok()).flatten()
}
