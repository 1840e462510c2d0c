"""How complete a recorded site is: what its page asked for in some loads, and what of it the recording had.

Kept with the site as `sites/<name>/completeness.json`. It is no part of the recording: `digest`, by which a
campaign knows a site again, leaves it out. Nothing here knows how a load is made.
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
from dataset.run_files import HAR, REQUEST_LOG
from measure.run.evidence import page_requests
from record.layout import COMPLETENESS, LIVE
from record.site import Site
from servers.matching import Kind

FILE = COMPLETENESS
FORMAT = 1
# A site may come from anybody, with this file. All URLs of a page's requests are shorter.
FILE_BYTES = 64 << 20
PART_BYTES = 1 << 20

# The kind of a request that no server got, since its host was not recorded or does not answer there.
UNREACHABLE = "unreachable"


# Numbers, also in hexadecimal if they are long: times, versions, hashes.
NUMBERS = re.compile(r"[0-9a-f]{8,}|[0-9]+", re.IGNORECASE)


class Reason(StrEnum):
    """Why no load of a page asked for a recorded exchange."""

    NEVER = "never asked for"
    OTHER_BROWSER = "recorded for another browser, which got another form"
    OTHER_TIME = "recorded at another time, under other numbers or another query"


@dataclass(frozen=True)
class RequestedUrl:
    """One URL that a page asked for in one load: how it was answered (a `Kind`, or `UNREACHABLE`), by which
    recorded exchange if by any, and which documents or scripts asked."""

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
        """The key of the answer: all URLs that one recorded exchange answered are one."""
        return self.file or f"{self.method} {self.url.partition('?')[0]}"


@dataclass(frozen=True)
class Loads:
    """Some loads of a site over one protocol.

    Requests are counted once for each URL and load, and summed over the loads: `requested` is how many there
    were; of those `exact`, `prefix`, `head` and `preflight` (`servers.matching.Kind`) were served and `missed`
    not. `jaccard` is the mean Jaccard index of the sets of requested URLs over all pairs of loads,
    `jaccard_as_matched` that of the sets of recorded exchanges that answered. `last_frames_unlike` is the
    largest visible difference (0 to 1) of any film's last frame from the first film's, None without films.
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
    """A URL that was asked for and not there: in how many loads, and by which documents or scripts."""

    method: str
    url: str
    loads: int
    asked_by: tuple[str, ...]


@dataclass(frozen=True)
class Completeness:
    """The findings of some loads: of which site (`digest`), when, and with which network and programs.

    `protocols` are the loads of each; `jaccard` is over the loads of all of them. `unused` are the recorded
    exchanges (`host/NNNNN-slug`) that no load asked for, `fetched` the URLs that were fetched to close the site.
    `unused_because` has the reason (a `Reason`) for each of `unused`.
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
        """The share of requested URLs that was served, 0 to 1."""
        requested = sum(loads.requested for loads in self.protocols.values())
        return 1 - sum(loads.missed for loads in self.protocols.values()) / requested if requested else 1.0

    def write(self, site: Site) -> None:
        """Keep it with `site`. Raises EyelevelError when it is too long to be read again."""
        document = json.dumps({"format": FORMAT, **asdict(self)}, indent=1) + "\n"
        if len(document) > FILE_BYTES:
            raise EyelevelError(
                f"{site.name} asks for too much to be kept: the list of what is missing has more than "
                f"{FILE_BYTES >> 20} MiB"
            )
        write_atomically(site.folder / FILE, document)


def read(site: Site) -> Completeness | None:
    """The completeness of `site`; None when nothing is known, or only of another recording. Raises EyelevelError."""
    path = site.folder / FILE
    try:
        values = parse_json(read_regular(path, FILE_BYTES))
        if not isinstance(values, dict):
            raise EyelevelError("it is no JSON object")
        if values.pop("format", None) != FORMAT:
            return None
        completeness = structured(values, Completeness, "it")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, EyelevelError) as error:
        raise EyelevelError(f"{path} is broken ({error}); remove it, and 'make close' the site again") from None
    return completeness if completeness.site_sha256 == digest(site) else None


def digest(site: Site) -> str:
    """A fingerprint of everything in the site's folder but what is kept here, and of its live loads."""
    fingerprint = hashlib.sha256()
    ours = (site.folder / FILE, site.folder / LIVE)
    paths = (path for path in site.folder.rglob("*") if path.is_file() and path not in ours)
    for path in sorted(paths):
        fingerprint.update(f"{path.relative_to(site.folder)}\0{path.stat().st_size}\0".encode())
        # Files that people keep beside a recording may be as long as all of it.
        with path.open("rb") as file:
            while part := file.read(PART_BYTES):
                fingerprint.update(part)
    return fingerprint.hexdigest()


def requested_urls(folder: Path, requests: Iterable[Request]) -> tuple[RequestedUrl, ...]:
    """The URLs that the page asked for in a load, of which `folder` is the evidence and `requests` the netlog's.

    Each URL comes once, with its first answer; the browser's own requests do not count.
    """
    requests = tuple(requests)
    askers = _askers(folder / HAR, requests)
    logged = [(line.method, line.url, line.kind, line.file) for line in page_requests(folder / REQUEST_LOG, requests)]
    # Requests that were not sent ended before any server could be asked.
    unsent = [
        (request.method, request.url.partition("#")[0], UNREACHABLE, "")
        for request in requests
        if request.error and request.is_of_web and not request.protocol and not request.by_browser
    ]
    first = {(method, url): (kind, file) for method, url, kind, file in reversed([*logged, *unsent])}
    return tuple(
        RequestedUrl(method, url, kind, file, tuple(sorted(askers[url])))
        for (method, url), (kind, file) in reversed(first.items())
    )


def summarise(loads: Sequence[Sequence[RequestedUrl]], last_frames_unlike: float | None = None) -> Loads:
    """A summary of the loads of one protocol."""
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
    """The URLs that were missed in any load, those of most loads first."""
    times: Counter[tuple[str, str]] = Counter()
    asked_by: dict[tuple[str, str], set[str]] = defaultdict(set)
    for requested in (url for load in loads for url in load if url.missed):
        times[requested.method, requested.url] += 1
        asked_by[requested.method, requested.url].update(requested.asked_by)
    return tuple(Missed(*what, count, tuple(sorted(asked_by[what]))) for what, count in times.most_common())


def unused_exchanges(site: Site, loads: Iterable[Iterable[RequestedUrl]]) -> tuple[str, ...]:
    """The recorded exchanges that no load asked for."""
    used = {url.file for load in loads for url in load}
    return tuple(exchange.file for exchange in site.exchanges if exchange.file not in used)


def reasons_for_unused(site: Site, loads: Iterable[Iterable[RequestedUrl]]) -> dict[str, Reason]:
    """The file of each unused exchange → the reason why no load asked for it.

    OTHER_TIME: a page asked for a URL that was not recorded, and that differs from the exchange's only in its query or
    numbers. OTHER_BROWSER: a page asked for the same name with another ending, such as picture.webp in place of
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
    """The parts of a URL that do not change with time: all but its query, with each number replaced by 0."""
    return NUMBERS.sub("0", url.partition("?")[0])


def _without_ending(url: str) -> str:
    path = url.partition("?")[0]
    folder, _, name = path.rpartition("/")
    stem, dot, _ = name.rpartition(".")
    return f"{folder}/{stem}." if stem and dot else url


def jaccard(sets: Sequence[Set[object]]) -> float:
    """The mean over all pairs of `sets` of the Jaccard index: the size of their intersection over that of their union.

    1 when there is no pair.
    """
    pairs = [(one & other, one | other) for one, other in combinations(sets, 2)]
    return mean(len(common) / len(either) if either else 1.0 for common, either in pairs) if pairs else 1.0


def _askers(har: Path, requests: Iterable[Request]) -> dict[str, set[str]]:
    """URL → who asked for it: the document or script as the developer tools tell it, else the page's origin."""
    askers: dict[str, set[str]] = defaultdict(set)
    for entry in read_json(har)["log"]["entries"]:
        if initiator := entry.get("_initiator"):
            askers[entry["request"]["url"].partition("#")[0]].add(initiator.partition("#")[0])
    for request in requests:
        url = request.url.partition("#")[0]
        if request.initiator and url not in askers:
            askers[url].add(request.initiator)
    return askers
