"""Chooses the recorded response that answers a request: the rule that all servers follow.

A request is a method, an authority (lower case, without `:443`) and a target (path and query). Path and query are
compared as they were sent. Among the recorded exchanges of the authority, the kinds of matches are, in this order:

1. exact      same method, path and query. If it was recorded several times, those that fit best (`servers.fit`) are
              served in recorded order, each once, and then the last of them again and again. Request bodies are
              ignored, since they are not stored: of two POSTs to the same URL, the first gets the first answer.
2. prefix     same method and path; the longest common prefix of the queries; ties go to the earliest. The first of the
              recordings that fit best is served.
3. head       a HEAD that was not recorded is answered like a GET, without the body.
4. preflight  a CORS preflight that was not recorded is granted.
5. miss       404.

`servers/quic/` implements the same rule in C++; `tests/vectors/matching.json` tests both. Standard library only:
uWSGI's interpreter loads this file.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from os.path import commonprefix
from sys import intern
from typing import Generic, NamedTuple, TypeVar
from urllib.parse import urlsplit

from servers.fit import fit_of

T = TypeVar("T")


class Kind(StrEnum):
    """The kind of a match, as written in the request log."""

    EXACT = "exact"
    PREFIX = "prefix"
    HEAD = "head"
    PREFLIGHT = "preflight"
    MISS = "miss"


class Recorded(NamedTuple, Generic[T]):
    """The parts of a recorded exchange that decide when it is served, and the response in the server's own form."""

    method: str
    url: str
    status: int
    content_range: str | None
    response: T


class Candidate(NamedTuple, Generic[T]):
    """A recorded exchange without its request: that is the key under which the exchange is stored."""

    status: int
    content_range: str | None
    response: T


class Match(NamedTuple, Generic[T]):
    """The recorded response that answers a request; None for a granted preflight or a miss."""

    kind: Kind
    recorded: T | None = None


class Matcher(Generic[T]):
    """Finds recorded responses; remembers which were served, to serve repeats in order."""

    def __init__(self, recorded: Iterable[Recorded[T]]) -> None:
        """`recorded`: the exchanges in recorded order."""
        self._by_path: dict[tuple[str, str, str], dict[str, list[Candidate[T]]]] = {}
        self._served: set[int] = set()
        for exchange in recorded:
            parts = urlsplit(exchange.url)
            # A site may have thousands of exchanges, so save memory: each authority is stored once, and a list with a
            # single element has no spare capacity.
            path = (exchange.method, intern(normal_authority(parts.netloc)), parts.path or "/")
            candidate = Candidate(exchange.status, exchange.content_range, exchange.response)
            queries = self._by_path.setdefault(path, {})
            if repeats := queries.get(parts.query):
                repeats.append(candidate)
            else:
                queries[parts.query] = [candidate]

    def match(self, method: str, authority: str, target: str, headers: Mapping[str, str]) -> Match[T]:
        """The answer to one request. `headers`: the request's, names in lower case."""
        authority = normal_authority(authority)
        if match := self._recorded(method, authority, target, headers):
            return match
        if method == "HEAD" and (match := self._recorded("GET", authority, target, headers)):
            return Match(Kind.HEAD, match.recorded)
        if method == "OPTIONS" and "origin" in headers and "access-control-request-method" in headers:
            return Match(Kind.PREFLIGHT)
        return Match(Kind.MISS)

    def _recorded(self, method: str, authority: str, target: str, headers: Mapping[str, str]) -> Match[T] | None:
        path, _, query = target.partition("?")
        queries = self._by_path.get((method, authority, path or "/"))
        if queries is None:
            return None
        if query in queries:
            return Match(Kind.EXACT, self._next(_best_fitting(queries[query], headers)).response)
        nearest = max(queries, key=lambda recorded: len(commonprefix((recorded, query))))  # noqa: RUF071 (no path)
        return Match(Kind.PREFIX, _best_fitting(queries[nearest], headers)[0].response)

    def _next(self, repeats: Sequence[Candidate[T]]) -> Candidate[T]:
        """The next of `repeats` to be served."""
        chosen = next((exchange for exchange in repeats if id(exchange) not in self._served), repeats[-1])
        self._served.add(id(chosen))
        return chosen


def _best_fitting(repeats: Iterable[Candidate[T]], headers: Mapping[str, str]) -> list[Candidate[T]]:
    """The recordings among `repeats` that best fit a request with `headers`, in recorded order."""
    requested_range = headers.get("range")
    conditional = "if-none-match" in headers or "if-modified-since" in headers
    fits = [(fit_of(requested_range, conditional, r.status, r.content_range), r) for r in repeats]
    best = min(fit for fit, _ in fits)
    return [exchange for fit, exchange in fits if fit == best]


def normal_authority(authority: str) -> str:
    """`authority` in lower case, without user information and the default port."""
    return authority.rpartition("@")[2].lower().removesuffix(":443")


def preflight_headers(headers: Mapping[str, str]) -> list[tuple[str, str]]:
    """The fields that grant a CORS preflight (Fetch standard, section 3.3). `headers`: the request's, lower case."""
    granted = [
        ("access-control-allow-origin", headers["origin"]),
        ("access-control-allow-credentials", "true"),
        ("access-control-allow-methods", headers["access-control-request-method"]),
    ]
    if requested := headers.get("access-control-request-headers"):
        granted.append(("access-control-allow-headers", requested))
    return granted
