"""Which recorded response answers a request: the rule both servers follow.

A request is a method, an authority (lower case, without `:443`) and a target (path and query). Path
and query are compared as they were sent. Among the recorded exchanges of the authority:

1. exact      same method, path and query; recorded several times, they are served in recorded order,
              the last one again and again.
2. prefix     same method and path; the longest common prefix of the queries; ties go to the earliest.
3. head       a HEAD that was not recorded is answered like a GET, without the body.
4. preflight  a CORS preflight that was not recorded is granted.
5. miss       404.

`servers/quic/` implements the same rule in C++; `tests/vectors/matching.json` holds both to it.
Standard library only: uWSGI's interpreter loads this file.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from os.path import commonprefix
from typing import Generic, TypeVar
from urllib.parse import urlsplit

T = TypeVar("T")


class Kind(StrEnum):
    """How a response was found; the words of the request log."""

    EXACT = "exact"
    PREFIX = "prefix"
    HEAD = "head"
    PREFLIGHT = "preflight"
    MISS = "miss"


@dataclass(frozen=True)
class Match(Generic[T]):
    """The recorded response that answers a request; none for a preflight granted or a miss."""

    kind: Kind
    recorded: T | None = None


class Matcher(Generic[T]):
    """Finds recorded responses; remembers how often each was asked for, to serve repeats in order."""

    def __init__(self, recorded: Iterable[tuple[str, str, T]]) -> None:
        """`recorded`: method, URL and response of each exchange, in recorded order."""
        self._by_path: dict[tuple[str, str, str], dict[str, list[T]]] = defaultdict(lambda: defaultdict(list))
        self._asked: Counter[tuple[str, str, str, str]] = Counter()
        for method, url, response in recorded:
            parts = urlsplit(url)
            path = (method, normal_authority(parts.netloc), parts.path or "/")
            self._by_path[path][parts.query].append(response)

    def match(self, method: str, authority: str, target: str, headers: Mapping[str, str]) -> Match[T]:
        """The answer to one request. `headers`: the request's, names in lower case."""
        authority = normal_authority(authority)
        if found := self._recorded(method, authority, target):
            return found
        if method == "HEAD" and (found := self._recorded("GET", authority, target)):
            return Match(Kind.HEAD, found.recorded)
        if method == "OPTIONS" and "origin" in headers and "access-control-request-method" in headers:
            return Match(Kind.PREFLIGHT)
        return Match(Kind.MISS)

    def _recorded(self, method: str, authority: str, target: str) -> Match[T] | None:
        path, _, query = target.partition("?")
        queries = self._by_path.get((method, authority, path or "/"))
        if queries is None:
            return None
        if query in queries:
            responses = queries[query]
            asked = (method, authority, path, query)
            turn = min(self._asked[asked], len(responses) - 1)
            self._asked[asked] += 1
            return Match(Kind.EXACT, responses[turn])
        nearest = max(queries, key=lambda recorded: len(commonprefix((recorded, query))))  # noqa: RUF071 (no path)
        return Match(Kind.PREFIX, queries[nearest][0])


def normal_authority(authority: str) -> str:
    """Lower case, without user information and the default port."""
    return authority.rpartition("@")[2].lower().removesuffix(":443")


def preflight_headers(headers: Mapping[str, str]) -> list[tuple[str, str]]:
    """What grants a CORS preflight (Fetch standard, section 3.3). `headers`: the request's, lower case."""
    granted = [
        ("access-control-allow-origin", headers["origin"]),
        ("access-control-allow-credentials", "true"),
        ("access-control-allow-methods", headers["access-control-request-method"]),
    ]
    if requested := headers.get("access-control-request-headers"):
        granted.append(("access-control-allow-headers", requested))
    return granted
