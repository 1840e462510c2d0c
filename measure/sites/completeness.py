"""How complete a recorded site is: which URLs its page requested in some loads, and which of these were recorded.

This is stored with the site as `sites/<name>/completeness.json`, but is not part of the recording: `digest`, by which
campaigns identify sites, leaves it out. Nothing here depends on how loads are made.
"""

import hashlib
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass
from enum import StrEnum
from itertools import combinations
from pathlib import Path
from statistics import mean

from base.bounded import parse_json, read_regular
from base.errors import EyelevelError
from base.files import read_json, write_atomically
from base.structure import structured
from browsers.contract import Request
from dataset.har import comparable_url
from dataset.run_files import HAR, REQUEST_LOG
from measure.run.evidence import page_requests
from record.layout import COMPLETENESS, LIVE
from record.site import Site
from servers.matching import Kind

FILE = COMPLETENESS
FORMAT = 1
# A site, including this file, may come from anybody. This is more than all URLs of any page's requests need.
FILE_BYTES = 64 << 20
PART_BYTES = 1 << 20

# The kind of a request that reached no server, since its host was not recorded or does not answer there.
UNREACHABLE = "unreachable"


# Numbers, such as times, versions and hashes; those with at least eight digits may be hexadecimal.
NUMBERS = re.compile(r"[0-9a-f]{8,}|[0-9]+", re.IGNORECASE)


class Reason(StrEnum):
    """Why no load of a page requested a recorded exchange."""

    NEVER = "never asked for"
    OTHER_BROWSER = "recorded for another browser, which received another form"
    OTHER_TIME = "recorded at another time, under other numbers or another query"


@dataclass(frozen=True)
class RequestedUrl:
    """One URL that a page requested in one load: how it was answered (a `Kind`, or `UNREACHABLE`), by which recorded
    exchange, if any, and which documents or scripts requested it."""

    method: str
    url: str
    kind: str
    file: str
    asked_by: tuple[str, ...]

    @property
    def missed(self) -> bool:
        return self.kind in (Kind.MISS, UNREACHABLE)

    @property
    def matched(self) -> str:
        """The key of the answer: URLs that the same recorded exchange answered have the same key."""
        return self.file or f"{self.method} {self.url.partition('?')[0]}"


@dataclass(frozen=True)
class Loads:
    """Some loads of a site over one protocol.

    Requests count once for each URL and load, and are summed over the loads: `requested` is the total; `exact`,
    `prefix`, `head` and `preflight` were served in this way (`servers.matching.Kind`), and `missed` were not served.
    `jaccard` is the mean Jaccard index of the sets of requested URLs over all pairs of loads; `jaccard_as_matched` is
    that of the sets of recorded exchanges that answered. `last_frames_unlike` is the largest visible difference (0 to
    1) between any film's last frame and the first film's; None without films.
    """

    loads: int
    requested: int
    exact: int
    prefix: int
    head: int
    preflight: int
    missed: int
    jaccard: float
    jaccard_as_matched: float
    last_frames_unlike: float | None = None


@dataclass(frozen=True)
class Missed:
    """A requested URL that was not served: in how many loads, and by which documents or scripts it was requested."""

    method: str
    url: str
    loads: int
    asked_by: tuple[str, ...]


@dataclass(frozen=True)
class Completeness:
    """The findings of some loads: the site (`digest`), the time, and the network and programs used.

    `protocols` has the loads over each protocol; `jaccard` is over the loads of all of them. `unused` are the recorded
    exchanges (`host/NNNNN-slug`) that no load requested; `unused_because` has the reason (a `Reason`) for each.
    `fetched` are the URLs that were fetched to complete the site.
    """

    site_sha256: str
    closed_at: str
    network: str
    repeatable: bool
    versions: Mapping[str, str]
    protocols: Mapping[str, Loads]
    jaccard: float
    missed: tuple[Missed, ...]
    unused: tuple[str, ...]
    unused_because: Mapping[str, str]
    fetched: tuple[str, ...] = ()

    @property
    def served(self) -> float:
        """The share of requested URLs that were served, 0 to 1."""
        requested = sum(loads.requested for loads in self.protocols.values())
        return 1 - sum(loads.missed for loads in self.protocols.values()) / requested if requested else 1.0

    def write(self, site: Site) -> None:
        """Store this with `site`. Raises EyelevelError when it is too long to be read again."""
        document = json.dumps({"format": FORMAT, **asdict(self)}, indent=1) + "\n"
        if len(document) > FILE_BYTES:
            raise EyelevelError(
                f"{site.name} requests too much: the list of missing URLs has more than {FILE_BYTES >> 20} MiB"
            )
        write_atomically(site.folder / FILE, document)


def read(site: Site) -> Completeness | None:
    """The completeness of `site`; None if it is unknown, or known only for another recording. Raises EyelevelError."""
    path = site.folder / FILE
    try:
        values = parse_json(read_regular(path, FILE_BYTES))
        if not isinstance(values, dict):
            raise EyelevelError("it is not a JSON object")
        if values.pop("format", None) != FORMAT:
            return None
        completeness = structured(values, Completeness, "it")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, EyelevelError) as error:
        raise EyelevelError(f"{path} is broken ({error}); remove it, then 'make close' the site") from None
    return completeness if completeness.site_sha256 == digest(site) else None


def digest(site: Site) -> str:
    """A fingerprint of all files in the site's folder, except for its completeness and its live loads."""
    fingerprint = hashlib.sha256()
    ours = (site.folder / FILE, site.folder / LIVE)
    paths = (path for path in site.folder.rglob("*") if path.is_file() and path not in ours)
    for path in sorted(paths):
        fingerprint.update(f"{path.relative_to(site.folder)}\0{path.stat().st_size}\0".encode())
        # Files that people keep in the folder may be as long as the whole recording.
        with path.open("rb") as file:
            while part := file.read(PART_BYTES):
                fingerprint.update(part)
    return fingerprint.hexdigest()


def requested_urls(folder: Path, requests: Iterable[Request]) -> tuple[RequestedUrl, ...]:
    """The URLs that the page requested in a load; `folder` has its evidence, and `requests` come from the netlog.

    Each URL is listed once, with its first answer; the browser's own requests do not count.
    """
    requests = tuple(requests)
    askers = _askers(folder / HAR, requests)
    logged = [(line.method, line.url, line.kind, line.file) for line in page_requests(folder / REQUEST_LOG, requests)]
    # Requests that were not sent failed before they reached a server.
    unsent = [
        (request.method, request.url.partition("#")[0], UNREACHABLE, "")
        for request in requests
        if request.error and request.is_of_web and not request.protocol and not request.by_browser
    ]
    first = {(method, url): (kind, file) for method, url, kind, file in reversed([*logged, *unsent])}
    return tuple(
        RequestedUrl(method, url, kind, file, tuple(sorted(askers[comparable_url(url)])))
        for (method, url), (kind, file) in reversed(first.items())
    )


def summarise(loads: Sequence[Sequence[RequestedUrl]], last_frames_unlike: float | None = None) -> Loads:
    """A summary of the loads over one protocol."""
    kinds = Counter(url.kind for load in loads for url in load)
    return Loads(
        loads=len(loads),
        requested=kinds.total(),
        exact=kinds[Kind.EXACT],
        prefix=kinds[Kind.PREFIX],
        head=kinds[Kind.HEAD],
        preflight=kinds[Kind.PREFLIGHT],
        missed=kinds[Kind.MISS] + kinds[UNREACHABLE],
        jaccard=jaccard([{(url.method, url.url) for url in load} for load in loads]),
        jaccard_as_matched=jaccard([{url.matched for url in load} for load in loads]),
        last_frames_unlike=last_frames_unlike,
    )


def missed_urls(loads: Iterable[Iterable[RequestedUrl]]) -> tuple[Missed, ...]:
    """The URLs that were missed in any load; those missed in the most loads come first."""
    times: Counter[tuple[str, str]] = Counter()
    asked_by: dict[tuple[str, str], set[str]] = defaultdict(set)
    for requested in (url for load in loads for url in load if url.missed):
        times[requested.method, requested.url] += 1
        asked_by[requested.method, requested.url].update(requested.asked_by)
    return tuple(Missed(*what, count, tuple(sorted(asked_by[what]))) for what, count in times.most_common())


def unused_exchanges(site: Site, loads: Iterable[Iterable[RequestedUrl]]) -> tuple[str, ...]:
    """The recorded exchanges that no load requested."""
    used = {url.file for load in loads for url in load}
    return tuple(exchange.file for exchange in site.exchanges if exchange.file not in used)


def reasons_for_unused(site: Site, loads: Iterable[Iterable[RequestedUrl]]) -> dict[str, Reason]:
    """The file of each unused exchange → the reason why no load requested it.

    OTHER_TIME: the page requested a URL that was not recorded and differs from the exchange's only in its query or
    numbers. OTHER_BROWSER: the page requested the same name with another ending, such as picture.webp in place of
    picture.jpg. NEVER: neither.
    """
    loads = [list(load) for load in loads]
    unused = set(unused_exchanges(site, loads))
    requested = [url for load in loads for url in load]
    elsewhen = {_like(url.url) for url in requested if url.missed or url.kind == Kind.PREFIX}
    forms = {_without_ending(url.url) for url in requested}
    reasons: dict[str, Reason] = {}
    for exchange in (exchange for exchange in site.exchanges if exchange.file in unused):
        if _like(exchange.url) in elsewhen:
            reasons[exchange.file] = Reason.OTHER_TIME
        elif _without_ending(exchange.url) in forms:
            reasons[exchange.file] = Reason.OTHER_BROWSER
        else:
            reasons[exchange.file] = Reason.NEVER
    return reasons


def _like(url: str) -> str:
    """The parts of a URL that do not change with time: without its query, and with each number replaced by 0."""
    return NUMBERS.sub("0", url.partition("?")[0])


def _without_ending(url: str) -> str:
    path = url.partition("?")[0]
    folder, _, name = path.rpartition("/")
    stem, dot, _ = name.rpartition(".")
    return f"{folder}/{stem}." if stem and dot else url


def jaccard(sets: Sequence[Set[object]]) -> float:
    """The mean Jaccard index over all pairs of `sets`: the size of their intersection over that of their union.

    It is 1 if there is no pair.
    """
    pairs = [(one & other, one | other) for one, other in combinations(sets, 2)]
    return mean(len(common) / len(either) if either else 1.0 for common, either in pairs) if pairs else 1.0


def _askers(har: Path, requests: Iterable[Request]) -> dict[str, set[str]]:
    """URL (`comparable_url`) → who requested it: the document or script that the developer tools name; otherwise the
    page's origin."""
    askers: dict[str, set[str]] = defaultdict(set)
    for entry in read_json(har)["log"]["entries"]:
        if initiator := entry.get("_initiator"):
            askers[comparable_url(entry["request"]["url"])].add(initiator.partition("#")[0])
    for request in requests:
        url = comparable_url(request.url)
        if request.initiator and url not in askers:
            askers[url].add(request.initiator)
    return askers
