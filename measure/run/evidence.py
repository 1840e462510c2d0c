"""The evidence that a finished run has left in its folder. This module does not know the settings of the run."""

import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from base.bounded import read_json_value
from base.errors import EyelevelError
from base.files import write_json
from browsers.contract import NAME_NOT_RESOLVED, Browser, Request, Transfer
from browsers.registry import browser_of
from dataset.har import navigated_s
from dataset.last_frames import write_last_frame
from dataset.navigation import read_navigation
from dataset.run_files import (
    ATTEMPT,
    FILM_LOG,
    HAR,
    LOG,
    REPLAY_EVIDENCE,
    REPLAY_LOG,
    REQUEST_LOG,
    TIMES,
    TIMINGS,
    VISUAL,
)
from films.contents import PICTURES_BYTES, film_contents
from films.frames import FilmStart, film_start
from films.log import read_log
from films.strip import keep_strip
from films.visual_metrics import VisualMetrics, visual_metrics
from measure.instruments.contract import FinishedRun, Readings, instruments
from measure.instruments.cross_traffic import CrossTrafficFlow, read_cross_traffic
from measure.instruments.processor import affinity_of
from measure.instruments.syns import read_syns
from measure.run.largest_paint import LargestPaint, largest_paint
from servers.matching import Kind

# The line in which a shell reports that it was late (`shells/src/shell.rs`).
LATE = re.compile(r"woke up more than \S+ ms late (\d+) times?, ([\d.]+) ms at worst")
# The places, in Browsertime's document on a page, of the times of the load event and of the first paint.
TIME_TO_LOAD, TIME_TO_PAINT = ("pageTimings", "pageLoadTime"), ("paintTiming", "first-paint")
# The errors that may occur if a document does not have the expected form.
UNUSABLE = (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError)


@dataclass(frozen=True)
class RequestCounts:
    """Numbers from the servers' log of requests: all requests of the page, those that were served, those that missed,
    and the different recorded exchanges that answered them."""

    requests: int = 0
    served: int = 0
    missed: int = 0
    exchanges: int = 0


@dataclass(frozen=True)
class LoggedRequest:
    """A line of the servers' log: how a request was matched (`kind`), the request, and the recorded exchange that
    answered it (`file`, such as `host/NNNNN-slug`; empty if none did)."""

    kind: str
    method: str
    url: str
    file: str


@dataclass(frozen=True)
class Evidence:
    """One run. A value is None or empty if the evidence lacks it. Times are in ms from navigation start.

    `requests`: all requests of the browser, in their order (from its network log). `har_protocols`: how many of the
    page's requests used each protocol (from the developer tools). `har_bytes`: how many bytes of responses each
    protocol carried. `page`: Browsertime's document on the page, as in `browsertime.json`. `followed_ms`: how long
    after navigation start the times of this document begin: more than 0 only if the first page navigated to this one by
    itself. `first_paint`: when the browser first painted. `film_size`: the film's width and height in pixels.
    `film_missed_pixels`: how many pixels of the screen's final look the film lacks. `late_wakeups`: how often the
    emulated network forwarded packets more than 1 ms late. `latest_wakeup_ms`: by how much at worst. `browsed_s`: how
    long the browser was driven; 0 if it was not driven to the end. `readings`: those of the instruments
    (`measure.instruments`). `clock_shift_s`: by how much the machine's clock was set forward or back during the run.
    `strange_cores`: the processors outside the run's lane on which one of its processes could run. `slowness`: how many
    times as long as usual the canary took before the run's block. `replay_failure`: why the replay failed, if it did.
    `tcp_syns`: how often the browser requested a TCP connection, by a segment of its own or from a proxy; None if the
    load failed before these were counted. `next_prepared_ms`: when the preparation of the next run began, in this run's
    quiet time; None if it did not. `cross_traffic`: the background flows. `transfer`: what servers and browser sent
    each other until the load event. `largest`: the largest contentful paint. `up_mbps` and `down_mbps`: the rates of
    the network that the run is claimed to be on, if they are constant; they are in no file.
    """

    failures: tuple[str, ...]
    plt: float | None
    visual: VisualMetrics | None
    film: FilmStart | None
    requests: tuple[Request, ...]
    har_protocols: dict[str, int]
    request_counts: RequestCounts
    followed_ms: float = 0.0
    first_paint: float | None = None
    film_size: tuple[int, int] | None = None
    film_missed_pixels: int | None = None
    late_wakeups: int = 0
    latest_wakeup_ms: float = 0.0
    browsed_s: float = 0.0
    clock_shift_s: float = 0.0
    strange_cores: tuple[int, ...] = ()
    slowness: float = 1.0
    replay_failure: str | None = None
    tcp_syns: int | None = None
    cross_traffic: tuple[CrossTrafficFlow, ...] = ()
    next_prepared_ms: float | None = None
    page: Mapping[str, Any] = field(default_factory=dict)
    readings: Readings = field(default_factory=dict)
    har_bytes: Mapping[str, int] = field(default_factory=dict)
    transfer: Transfer | None = None
    largest: LargestPaint | None = None
    up_mbps: float | None = None
    down_mbps: float | None = None

    @property
    def device(self) -> Mapping[str, Any] | None:
        """The device as the page saw it (`browsers/browsertime/view.js`); None if the page was not asked."""
        return self._view.get("device")

    @property
    def script(self) -> Mapping[str, Any] | None:
        """The state of the page script at the end of the load (`record/page_script.js`): its `steps` with their times
        in ms from navigation start, whether it `ended`, and the `fault` that ended it. None if no document had a
        script."""
        return self._view.get("script")

    @property
    def _view(self) -> Mapping[str, Any]:
        views = [scripts.get("custom", {}).get("view") for scripts in self.page.get("browserScripts", ())]
        return next((view for view in views if view), {})

    @property
    def windows(self) -> int:
        """The number of the browser's windows at the end, as the driver counts them: a dialog for printing is one,
        too."""
        counts = [scripts.get("custom", {}).get("windows") for scripts in self.page.get("browserScripts", ())]
        return next((count for count in counts if count), 1)

    @property
    def page_url(self) -> str | None:
        """The URL of the page to which `page` belongs, without a fragment; None if the page was not asked."""
        urls = [scripts.get("pageinfo", {}).get("url") for scripts in self.page.get("browserScripts", ())]
        return next((url.partition("#")[0] for url in urls if url), None)

    @property
    def unrecorded(self) -> int:
        """How many requests of the page went to hosts that are not in the recording."""
        return sum(request.error == NAME_NOT_RESOLVED and not request.by_browser for request in self.requests)


def analyse_film(folder: Path, pictures_bytes: int = PICTURES_BYTES) -> None:
    """Analyse the film of the run in `folder`, and store the results there; does nothing if there is no film.

    At most `pictures_bytes` of pictures of each kind are kept in memory. When this returns, the results survive a power
    cut, and the film is not needed any more. Raises OSError when they cannot be stored.
    """
    film = folder / FILM_LOG
    if not film.exists():
        return
    analysis: dict[str, Any] = {"faults": []}
    try:
        log = read_log(film)
        analysis["size"] = (log.width, log.height)
        analysis["recorder"] = log.counts
        if not (navigation := read_navigation(folder)):
            raise EyelevelError("the page did not say when it was navigated to, so its film has no zero")
        zero_us = log.monotonic_us(navigation.began_ms)
        # When the navigation began, counted from the film's first picture.
        analysis["zero_s"] = round((zero_us - log.times_us[0]) / 1e6, 6)
        contents = film_contents(film, log, pictures_bytes)
        analysis["start"] = asdict(film_start(log, contents.looks, zero_us))
        assert contents.looks.last is not None  # a film that was decoded has a first picture
        write_last_frame(contents.looks.last, folder)
        times_ms = [(log.times_us[change] - zero_us) / 1000 for change in contents.thumbnail_changes]
        metrics = visual_metrics(contents.thumbnails, times_ms)
        analysis["metrics"] = asdict(metrics)
        keep_strip(log, contents.strip, zero_us, metrics.lvc, folder)
    except EyelevelError as error:
        analysis["faults"].append(str(error))
    write_json(folder / VISUAL, analysis)


def read_evidence(folder: Path, *, filmed: bool = True) -> Evidence:
    """The evidence in a run's folder. Its `failures` name missing and broken parts; this raises nothing."""
    browser = browser_of(folder)
    with browser.log_parsed_once(folder):
        return _evidence(folder, browser, filmed=filmed)


def _evidence(folder: Path, browser: Browser, *, filmed: bool) -> Evidence:
    failures: list[str] = []
    pages = _usable(_json(folder / TIMINGS, failures), _use_pages, folder / TIMINGS, failures)
    page = pages[0] if pages else {}
    if not page:
        failures.append(f"Browsertime reports no page; the last line of its log: {last_line(folder / LOG)}")
    visual = (_json(folder / VISUAL, failures) if filmed else None) or {}
    har = _usable(_json(folder / HAR, failures), partial(_use_har, browser), folder / HAR, failures)
    har = har or {"log": {"entries": []}}
    requests = _requests(folder, failures)
    late_wakeups, latest_wakeup_ms = _lateness(folder / REPLAY_LOG)
    circumstances = json.loads((folder / ATTEMPT).read_text()) if (folder / ATTEMPT).exists() else {}
    navigation = read_navigation(folder)
    followed_ms = navigation.followed_ms if navigation else 0.0
    # `plt` is the time from navigation start to the start of the load event, if there was one.
    plt, first_paint = (_timing(page, *times, followed_ms) for times in (TIME_TO_LOAD, TIME_TO_PAINT))
    metrics = VisualMetrics(**visual["metrics"]) if "metrics" in visual else None
    began_s = navigation.began_ms / 1000 if navigation else _navigated_s(har)
    load_s = _load_s(began_s, max(plt or 0, metrics.lvc if metrics else 0))
    readings = _readings(FinishedRun(folder, _account(folder), load_s), failures)
    transfer = _transfer(folder, _load_s(began_s, plt or 0), failures) if requests else None
    return Evidence(
        failures=(*failures, *_full_file_systems(folder), *_browsertime_errors(page), *visual.get("faults", ())),
        plt=plt,
        visual=metrics,
        film=FilmStart(**visual["start"]) if "start" in visual else None,
        requests=requests,
        har_protocols=_har_protocols(har, browser),
        request_counts=read_request_log(folder / REQUEST_LOG, requests),
        followed_ms=followed_ms,
        first_paint=first_paint,
        film_size=(visual["size"][0], visual["size"][1]) if "size" in visual else None,
        film_missed_pixels=visual.get("recorder", {}).get("missed_pixels"),
        late_wakeups=late_wakeups,
        latest_wakeup_ms=latest_wakeup_ms,
        browsed_s=_browsed_s(folder / TIMES),
        clock_shift_s=circumstances.get("clock_shift_s", 0.0),
        strange_cores=_strange_cores(folder, circumstances),
        slowness=circumstances.get("slowness", 1.0),
        replay_failure=circumstances.get("failure"),
        tcp_syns=_tcp_attempts(folder),
        cross_traffic=read_cross_traffic(folder, _account(folder), load_s),
        next_prepared_ms=_since_navigation(began_s, circumstances.get("next_prepared_at_s")),
        page=page,
        readings=readings,
        har_bytes=_har_bytes(har, browser),
        transfer=transfer,
        largest=_largest(folder, page, began_s, followed_ms, bool(requests), failures),
    )


def read_circumstances(folder: Path, load_s: tuple[float, float] | None = None) -> Evidence:
    """The evidence of a run that loaded no page: that of the machine, the emulated network and the background flows.
    `load_s`: the first and the last moment that count (s since 1970)."""
    late_wakeups, latest_wakeup_ms = _lateness(folder / REPLAY_LOG)
    circumstances = json.loads((folder / ATTEMPT).read_text())
    failures: list[str] = []
    readings = _readings(FinishedRun(folder, _account(folder), load_s), failures)
    return Evidence(
        failures=tuple(failures),
        plt=None,
        visual=None,
        film=None,
        requests=(),
        har_protocols={},
        request_counts=RequestCounts(),
        late_wakeups=late_wakeups,
        latest_wakeup_ms=latest_wakeup_ms,
        clock_shift_s=circumstances["clock_shift_s"],
        strange_cores=_strange_cores(folder, circumstances),
        slowness=circumstances["slowness"],
        replay_failure=circumstances["failure"],
        cross_traffic=read_cross_traffic(folder, _account(folder), load_s),
        readings=readings,
    )


def read_request_log(path: Path, requests: Iterable[Request] = ()) -> RequestCounts:
    """Count the page's requests in the servers' log at `path` (see `page_requests`)."""
    requested = page_requests(path, requests)
    missed = sum(request.kind == Kind.MISS for request in requested)
    exchanges = {request.file for request in requested} - {""}
    return RequestCounts(len(requested), len(requested) - missed, missed, len(exchanges))


def page_requests(path: Path, requests: Iterable[Request] = ()) -> list[LoggedRequest]:
    """The requests in the servers' log at `path`, whose lines are `kind, method, url, file`, separated by tabs; empty
    if there is no log.

    Requests that the browser made for itself, according to `requests`, are left out, such as that for the page's icon.
    """
    if not path.exists():
        return []
    of_browser = Counter(
        (request.method, request.url.partition("#")[0])
        for request in requests
        if request.by_browser and request.protocol
    )
    requested = []
    for line in path.read_text(errors="replace").splitlines():
        kind, method, url, file = (*line.split("\t"), "", "", "", "")[:4]
        if of_browser[method, url]:
            of_browser[method, url] -= 1
        else:
            requested.append(LoggedRequest(kind, method, url, file))
    return requested


def _har_protocols(har: Mapping[str, Any], browser: Browser) -> dict[str, int]:
    entries = [entry for entry in har["log"]["entries"] if browser.was_sent(entry)]
    return dict(Counter(entry["response"]["httpVersion"].lower() for entry in entries))


def _har_bytes(har: Mapping[str, Any], browser: Browser) -> dict[str, int]:
    count: Counter[str] = Counter()
    for entry in har["log"]["entries"]:
        if browser.was_sent(entry):
            count[entry["response"]["httpVersion"].lower()] += max(entry["response"].get("bodySize", 0), 0)
    return dict(count)


def share_of(version: str, counts: Mapping[str, int]) -> float | None:
    """The share of one version of HTTP in `counts`, a number for each version; None if all are 0."""
    total = sum(counts.values())
    return round(counts.get(version, 0) / total, 4) if total else None


def _timing(page: dict[str, Any], group: str, name: str, followed_ms: float = 0.0) -> float | None:
    """A time of the page, in ms from navigation start; None if it is 0 or missing. The page's own times begin
    `followed_ms` after navigation start."""
    times = [scripts.get("timings", {}).get(group, {}).get(name) for scripts in page.get("browserScripts", ())]
    return next((float(time) + followed_ms for time in times if time is not None and time > 0), None)


def _strange_cores(folder: Path, circumstances: Mapping[str, Any]) -> tuple[int, ...]:
    """The processors outside the run's lane on which one of its processes could run; empty if these processors or the
    lane are not known."""
    lane = circumstances.get("lane_cores")
    return tuple(sorted(affinity_of(folder) - set(lane))) if lane else ()


def _readings(run: FinishedRun, failures: list[str]) -> Readings:
    """The readings of all instruments. If an instrument cannot be read, its readings are missing, and `failures` gets
    the error."""
    readings: dict[str, float | None] = {}
    for instrument in instruments():
        try:
            readings |= instrument.read(run)
        except EyelevelError as error:
            failures.append(str(error))
    return readings


def _navigated_s(har: Mapping[str, Any]) -> float | None:
    """When the page was navigated to (s since 1970); None if the load failed."""
    return navigated_s(har) if har["log"].get("pages") else None


def _load_s(began_s: float | None, duration_ms: float) -> tuple[float, float] | None:
    """The start and end of the page's load (s since 1970); None if the load failed."""
    return (began_s, began_s + duration_ms / 1000) if began_s and duration_ms else None


def _since_navigation(began_s: float | None, at_s: float | None) -> float | None:
    """The time from the navigation to `at_s` (s since 1970), in ms; None if the load failed."""
    return round(1e3 * (at_s - began_s), 1) if at_s and began_s else None


def _lateness(log: Path) -> tuple[int, float]:
    """How often the emulated network was late, and its worst lateness in ms, over all its shells."""
    reports = LATE.findall(log.read_text(errors="replace")) if log.exists() else []
    return sum(int(times) for times, _ in reports), max((float(worst) for _, worst in reports), default=0.0)


def _browsed_s(path: Path) -> float:
    """The time (s) from the beginning of the load to the end of Browsertime; 0 if it is unknown."""
    try:
        times = read_json_value(path)
        return float(times["browsertime_end"] - times["begin"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0.0


def _browsertime_errors(page: dict[str, Any]) -> list[str]:
    groups = [group if isinstance(group, list) else [group] for group in page.get("errors", ())]
    errors = [str(error) for group in groups for error in group]
    return list(dict.fromkeys([*page.get("failureMessages", ()), *errors]))


def _full_file_systems(folder: Path) -> list[str]:
    """The replay's report of full file systems, which may have left servers' logs incomplete."""
    return [fault] if (fault := _account(folder).get("full")) else []


def _tcp_attempts(folder: Path) -> int | None:
    """How often the browser requested a TCP connection, by itself or from the hop that it uses as a proxy."""
    syns, of_hop = read_syns(folder), _account(folder).get("hop", {}).get("tcp_requests", 0)
    return syns if syns is None else syns + of_hop


def _account(folder: Path) -> dict[str, Any]:
    """The replay's own account of how it went; empty when it failed."""
    file = folder / REPLAY_EVIDENCE
    account: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    return account


def _requests(folder: Path, failures: list[str]) -> tuple[Request, ...]:
    browser = browser_of(folder)
    try:
        return tuple(browser.read_requests(folder))
    except (OSError, EOFError, zlib.error, *UNUSABLE) as error:
        failures.append(_fault(folder / browser.network_log, error))
        return ()


def _transfer(folder: Path, load_s: tuple[float, float] | None, failures: list[str]) -> Transfer | None:
    """The transfer while the page loaded; None for a load that failed."""
    browser = browser_of(folder)
    try:
        return browser.read_transfer(folder, *load_s) if load_s else None
    except UNUSABLE as error:
        failures.append(_fault(folder / browser.network_log, error))
        return None


def _largest(
    folder: Path,
    page: Mapping[str, Any],
    began_s: float | None,
    followed_ms: float,
    has_network_log: bool,
    failures: list[str],
) -> LargestPaint | None:
    """The largest contentful paint; None if the browser reports none."""
    browser = browser_of(folder)
    try:
        return largest_paint(page, browser.read_streams(folder) if has_network_log else (), began_s, followed_ms)
    except UNUSABLE as error:
        failures.append(_fault(folder / browser.network_log, error))
        return None


def _json(path: Path, failures: list[str]) -> Any:
    try:
        return read_json_value(path)
    except (OSError, ValueError) as error:
        failures.append(_fault(path, error))
        return None


def _usable(document: Any, use: Callable[[Any], object], path: Path, failures: list[str]) -> Any:
    """The `document` of the file `path`; None if it does not have the form that `use` needs. A page that has taken over
    the browser may have written anything into it."""
    try:
        if document:
            use(document)
    except UNUSABLE as error:
        failures.append(f"{path.name} is broken: {error!r}")
        return None
    return document


def _use_pages(pages: list[dict[str, Any]]) -> None:
    for group, name in (TIME_TO_LOAD, TIME_TO_PAINT):
        _timing(pages[0], group, name)
    _browsertime_errors(pages[0])


def _use_har(browser: Browser, har: Mapping[str, Any]) -> None:
    _har_protocols(har, browser)
    _har_bytes(har, browser)
    _navigated_s(har)


def last_line(path: Path) -> str:
    """The last line of the log at `path` that is not blank; empty if there is none."""
    lines = path.read_text(errors="replace").split("\n") if path.exists() else []
    return next((line.strip() for line in reversed(lines) if line.strip()), "")


def _fault(path: Path, error: Exception) -> str:
    return f"{path.name} is missing" if isinstance(error, FileNotFoundError) else f"{path.name} is broken: {error}"
