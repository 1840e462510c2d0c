//! Chooses the recorded response that answers a request: the rule that all servers follow.
//!
//! `servers/matching.py` describes this rule in words, and implements it, too; `tests/vectors/matching.json` tests all
//! implementations.

use std::collections::{HashMap, HashSet};

use http::HeaderMap;

use crate::fit::{Fit, fit_of};
use crate::responses::{RecordedResponse, normal_authority, path_and_query};

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    Exact,
    Prefix,
    Head,
    Preflight,
    Miss,
}

impl Kind {
    /// The word for this kind in the request log.
    pub fn word(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::Prefix => "prefix",
            Self::Head => "head",
            Self::Preflight => "preflight",
            Self::Miss => "miss",
        }
    }
}

/// The parts of a request that decide its answer; authority and target as they were sent.
pub struct Request<'a> {
    pub method: &'a str,
    pub authority: &'a str,
    pub target: &'a str,
    pub headers: &'a HeaderMap,
}

impl Request<'_> {
    /// A header field's value; empty if it was not sent.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

/// The recordings of one query, in recorded order, as indices into all responses.
struct Repeats {
    query: String,
    places: Vec<usize>,
}

/// Finds recorded responses; remembers which were served, to serve repeats in order.
pub struct Matcher {
    /// Queries in recorded order, by method, authority and path.
    by_path: HashMap<(String, String, String), Vec<Repeats>>,
    served: HashSet<usize>,
}

impl Matcher {
    pub fn new(responses: &[RecordedResponse]) -> Self {
        let mut by_path: HashMap<_, Vec<Repeats>> = HashMap::new();
        let mut known = HashMap::new();
        for (place, response) in responses.iter().enumerate() {
            let path = (response.method.clone(), response.authority.clone(), response.path.clone());
            let queries = by_path.entry(path.clone()).or_default();
            let number = *known.entry((path, response.query.clone())).or_insert_with(|| {
                queries.push(Repeats { query: response.query.clone(), places: Vec::new() });
                queries.len() - 1
            });
            queries[number].places.push(place);
        }
        Self { by_path, served: HashSet::new() }
    }

    /// How the answer to `request` was found, and its index in `responses`, from which the matcher was made.
    pub fn find(&mut self, request: &Request, responses: &[RecordedResponse]) -> (Kind, Option<usize>) {
        if let Some((kind, place)) = self.recorded(request.method, request, responses) {
            return (kind, Some(place));
        }
        if request.method == "HEAD" {
            if let Some((_, place)) = self.recorded("GET", request, responses) {
                return (Kind::Head, Some(place));
            }
        }
        let is_preflight = request.method == "OPTIONS"
            && !request.header("origin").is_empty()
            && !request.header("access-control-request-method").is_empty();
        (if is_preflight { Kind::Preflight } else { Kind::Miss }, None)
    }

    fn recorded(
        &mut self,
        method: &str,
        request: &Request,
        responses: &[RecordedResponse],
    ) -> Option<(Kind, usize)> {
        let (path, query) = path_and_query(request.target);
        let queries = self.by_path.get(&(method.into(), normal_authority(request.authority), path.into()))?;
        if let Some(repeats) = queries.iter().find(|repeats| repeats.query == query) {
            let fitting = best_fitting(&repeats.places, request, responses);
            let next = fitting.iter().find(|place| !self.served.contains(place)).or(fitting.last());
            let place = *next.expect("a query has a recording");
            self.served.insert(place);
            return Some((Kind::Exact, place));
        }
        // The first of several longest prefixes; `max_by_key` returns the last, so the order is reversed.
        let nearest = queries.iter().rev().max_by_key(|repeats| common_prefix(&repeats.query, query))?;
        Some((Kind::Prefix, best_fitting(&nearest.places, request, responses)[0]))
    }
}

/// Those of `places` whose responses best fit `request`, in recorded order.
fn best_fitting(places: &[usize], request: &Request, responses: &[RecordedResponse]) -> Vec<usize> {
    let conditional =
        !request.header("if-none-match").is_empty() || !request.header("if-modified-since").is_empty();
    let fit = |place: &usize| {
        let response = &responses[*place];
        fit_of(request.header("range"), conditional, response.status.as_u16(), &response.content_range)
    };
    let best = places.iter().map(fit).min().unwrap_or(Fit::Not);
    places.iter().copied().filter(|place| fit(place) == best).collect()
}

fn common_prefix(one: &str, other: &str) -> usize {
    one.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count()
}
