"""The effects that a shorter quiet time would have had on runs that were made with a longer one.

A run ends when, after the load event, no response to its page has ended for the quiet time, and none is under way
(browsers/browsertime/page_complete.js, quiet.mjs; older campaigns did not wait for responses under way). The times of a
run's requests show when the run would have ended with a shorter quiet time. Later events would then be missing:
responses, and changes of the picture. The picture at that time would be the final one, against which all visual metrics
are measured. A run shows nothing about quiet times longer than its own.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pandas as pd

from base.bounded import read_json_value
from base.errors import EyelevelError
from base.files import read_json
from browsers.contract import Request
from browsers.registry import browser_of
from dataset.gates import PAGE_GATES
from dataset.last_frames import read_last_frame
from dataset.navigation import read_navigation
from dataset.run_files import REQUEST_LOG, TIMES, TIMINGS, VISUAL
from dataset.table import CampaignDocument, Row, read_rows, require_document
from films.visual_metrics import visually_complete
from measure.campaign.expectations import RunOutcome, judge
from measure.run.evidence import read_request_log
from measure.run.gates import SHOWN_URL_LENGTH

# The visual metrics that a shorter film may change. The first visual change is left out, since it comes before the end
# of any film.
METRICS = ("lvc", "vc85", "si")
STATISTICS = {"median": 50, "p95": 95, "worst": 100}
# Browsertime first checks whether a page has finished this long (ms) after the navigation (its loadAndWait).
FIRST_ASKED_MS = 2000
# A page that never becomes quiet is stopped after PATIENCE quiet times. The check sees at most SEEN_RESPONSES responses
# of a page (Chromium's buffer of Resource Timing); see page_complete.js.
PATIENCE = 5
SEEN_RESPONSES = 250
# A quiet time is long enough if it is at least this many times the longest pause in any run.
MARGIN = 2
# The gates that look at single requests. A shorter run may end before the request that such a gate rejects.
REQUEST_GATES = ("wrong_protocol", "outside", "request_failed")

RUN = ["campaign", "network", "site", "protocol", "run", "attempt"]


class BrokenAttempt(EyelevelError):
    """An attempt lacks required evidence; the message says which."""


@dataclass(frozen=True)
class RunTimes:
    """The times of the events of an attempt, in ms from the navigation.

    `quiet_ms`: the time without a response after which the attempt ended. `awaited_requests`: whether it also waited
    for requests under way. `load_ms`: the end of its load event. `responses_ms`: the ends of the responses that the
    page's own check saw. `requests`: all requests of the browser. `spans`: the page's requests, each with its beginning
    and end (None: unknown). `progress`: pairs of a time and how complete the picture was then, in percent. `ended_ms`:
    when the browser had been ended.
    """

    row: Row
    folder: Path
    quiet_ms: float
    awaited_requests: bool
    load_ms: float
    ended_ms: float
    responses_ms: tuple[float, ...]
    requests: tuple[Request, ...]
    spans: tuple[tuple[Request, float, float | None], ...]
    progress: tuple[tuple[float, int], ...]

    def stop_ms(self, quiet_ms: float) -> float:
        """The earliest time at which the attempt might have ended with a quiet time of `quiet_ms`."""
        given_up_ms = self.load_ms + PATIENCE * quiet_ms
        stop_ms = self._quiet_at(0, quiet_ms)
        while self.awaited_requests and stop_ms < given_up_ms and (ends := self._ends_under_way(stop_ms)):
            stop_ms = self._quiet_at(min(ends), quiet_ms)
        return max(min(stop_ms, given_up_ms), FIRST_ASKED_MS)

    def _quiet_at(self, from_ms: float, quiet_ms: float) -> float:
        """The first time from `from_ms` on when no response has ended for `quiet_ms`."""
        last = self.load_ms
        for end in self.responses_ms:
            if end > max(last + quiet_ms, from_ms, FIRST_ASKED_MS):
                break
            last = max(last, end)
        return max(last + quiet_ms, from_ms, FIRST_ASKED_MS)

    def _ends_under_way(self, at_ms: float) -> list[float]:
        """The ends of the requests that were under way at `at_ms`; infinity for an unknown end."""
        return [inf if end is None else end for _, began, end in self.spans if began <= at_ms < (end or inf)]

    @property
    def last_change_ms(self) -> float:
        """The time of the last visual change."""
        return self.progress[-1][0]

    @property
    def pause_ms(self) -> float:
        """The longest time without a response, after the load event, that was followed by a response or a visual change
        before the run ended."""
        stop_ms = self.stop_ms(self.quiet_ms)
        ends = sorted(end for end in self.responses_ms if self.load_ms < end <= stop_ms)
        pauses = np.diff([self.load_ms, *ends])
        before_change = max([self.load_ms, *(end for end in ends if end <= self.last_change_ms)])
        return float(max([*pauses, self.last_change_ms - before_change, 0]))

    def late_requests(self, stop_ms: float) -> list[Request]:
        """The requests that began after `stop_ms`, but before the run ended."""
        return [request for request, began, _ in self.spans if stop_ms < began <= self.stop_ms(self.quiet_ms)]

    def late_responses(self, stop_ms: float) -> int:
        """The number of responses that ended after `stop_ms`, but before the run did."""
        last_ms = self.stop_ms(self.quiet_ms)
        return sum(end is not None and stop_ms < end <= last_ms for _, _, end in self.spans)

    def open_requests(self) -> int:
        """The number of requests that had not ended when the run did."""
        last_ms = self.stop_ms(self.quiet_ms)
        return sum(began <= last_ms and (end is None or end > last_ms) for _, began, end in self.spans)


def read_run(folder: Path, row: Row, document: CampaignDocument) -> RunTimes:
    """The times of the attempt in `row` of the campaign in `folder`.

    Raises BrokenAttempt, or EyelevelError when the campaign's quiet time is unknown.
    """
    quiet_ms = row.quiet_ms or document.settings.quiet_ms(row.network)
    awaited_requests = document.settings.browser.get("waits_for_open_requests", False)
    if quiet_ms is None:
        raise EyelevelError(f"{folder} does not have the quiet time of its runs")
    run_folder = folder / row.folder
    browser = browser_of(run_folder)
    try:
        page = read_json_value(run_folder / TIMINGS)[0]["browserScripts"][0]
        navigation = read_navigation(run_folder)
        start_ms = navigation.began_ms if navigation else float(page["pageinfo"]["navigationStartTime"])
        load_ms = float(page["timings"]["loadEventEnd"]) + (navigation.followed_ms if navigation else 0)
        progress = _steps(read_json(run_folder / VISUAL)["metrics"]["progress"])
        ended_ms = 1000 * read_json(run_folder / TIMES)["browsertime_end"] - start_ms
        requests = tuple(browser.read_requests(run_folder))
    except EyelevelError as error:
        raise BrokenAttempt(str(error)) from None
    except (OSError, EOFError, LookupError, ValueError, TypeError) as error:
        missing = f"{error.filename} is missing" if isinstance(error, FileNotFoundError) else repr(error)
        raise BrokenAttempt(f"{run_folder} lacks a part of its evidence: {missing}") from None
    spans = tuple(
        (request, began_ms, _since(request.ended_s, start_ms))
        for request in requests
        if not request.by_browser and (began_ms := _since(request.began_s, start_ms)) is not None and began_ms >= 0
    )
    if not spans:
        raise BrokenAttempt(f"{run_folder} has no request whose time is known")
    origin = _origin(next((request.url for request in reversed(requests) if request.main_frame), ""))
    # The page's own check does not see the requests of frames from other sites.
    seen = [end for request, _, end in spans if end is not None and request.initiator == origin]
    responses_ms = tuple(sorted(seen)[:SEEN_RESPONSES])
    times = (load_ms, ended_ms, responses_ms, requests, spans, progress)
    return RunTimes(row, run_folder, quiet_ms, awaited_requests, *times)


def changed_metrics(progress: Sequence[tuple[float, int]], stop_ms: float) -> dict[str, float]:
    """The change of each metric (ms) if the film had ended at `stop_ms`.

    All are 0 if the picture did not change later. Otherwise they are estimates: each picture's completeness is divided
    by that of the picture at `stop_ms`.
    """
    shorter = [(time, share) for time, share in progress if time <= stop_ms]
    if len(shorter) == len(progress) or not shorter or not shorter[-1][1]:
        return dict.fromkeys(METRICS, 0.0)
    final = shorter[-1][1]
    shares = [(time, min(100, round(100 * share / final))) for time, share in shorter]
    return {name: value - _metrics(progress)[name] for name, value in _metrics(shares).items()}


def _metrics(progress: Sequence[tuple[float, int]]) -> dict[str, float]:
    """METRICS from visual progress, as Browsertime's script computes them."""
    times, shares = np.array(progress, dtype=float).T
    text = ", ".join(f"{time:g}={share}" for time, share in progress)
    speed_index = float((np.diff(times) * (100 - shares[:-1]) / 100).sum())
    return {"lvc": float(times[-1]), "vc85": float(visually_complete(text, 85)), "si": speed_index}


@dataclass(frozen=True)
class RunChanges:
    """The changes that shorter quiet times would have made in runs, and, in `omissions`, a line for each attempt that
    is left out.

    `table` has a row for each run and each quiet time that is shorter than the run's own. Its columns: RUN; kept_ms
    (the run's quiet time), load_ms, pause_ms, open_requests (see RunTimes), lag_ms (the time from the end that kept_ms
    sets until the browser had ended); quiet_ms, stop_ms; late_responses, is_late_change, METRICS (changes in ms);
    is_rejected (the run is valid, but a gate would reject it with this quiet time), is_accepted (a gate rejected the
    run, but would not with this quiet time).
    """

    table: pd.DataFrame
    omissions: list[str]


def run_changes(folders: Iterable[Path], candidates_ms: Collection[int]) -> RunChanges:
    """The changes that each of `candidates_ms` would have made in the runs of the campaigns in `folders`: in valid
    runs, and in those that the gates for requests or pages rejected.

    Attempts that lack the required evidence are left out. Raises EyelevelError when a campaign was not filmed, or when
    two campaigns have different networks of the same name.
    """
    rows: list[dict[str, Any]] = []
    omissions: list[str] = []
    networks: dict[str, dict[str, Any]] = {}
    for folder in folders:
        document = require_document(folder)
        if not document.settings.filmed:
            raise EyelevelError(
                f"the runs of {folder} were not filmed, so their last visual changes are unknown; use filmed campaigns"
            )
        for name, network in document.settings.networks.items():
            setting = {key: value for key, value in network.items() if value is not None and key != "quiet_ms"}
            if networks.setdefault(name, setting) != setting:
                raise EyelevelError(f"the network {name} of {folder} is another one than in the campaigns before it")
        attempts = [row for row in read_rows(folder) if row.valid or row.gate in (*REQUEST_GATES, *PAGE_GATES)]
        cells: dict[tuple[str, str, str], list[RunTimes]] = {}
        for row in attempts:
            try:
                cells.setdefault((row.site, row.network, row.browser), []).append(read_run(folder, row, document))
            except BrokenAttempt as error:
                omissions.append(str(error))
        for runs in cells.values():
            for quiet_ms in sorted(candidates_ms):
                rows += _rows_of_cell(folder.resolve().name, runs, quiet_ms)
    return RunChanges(pd.DataFrame(rows), omissions)


def _rows_of_cell(campaign: str, runs: Sequence[RunTimes], quiet_ms: int) -> list[dict[str, Any]]:
    """The rows of `RunChanges.table` for the runs of one site, network and browser, and one quiet time."""
    compared = [run for run in runs if run.row.valid or run.row.gate in PAGE_GATES]
    places = {run.folder: place for place, run in enumerate(compared)}
    usual, shorter = _norms(compared, quiet_ms)
    rows = []
    for run in runs:
        if run.quiet_ms <= quiet_ms:
            continue
        stop_ms, place = run.stop_ms(quiet_ms), places.get(run.folder)
        is_late = place is None and _is_late_fault(run, stop_ms)
        rows.append(
            {
                "campaign": campaign,
                **{name: getattr(run.row, name) for name in RUN if name != "campaign"},
                "valid": run.row.valid,
                "kept_ms": run.quiet_ms,
                "load_ms": run.load_ms,
                "pause_ms": run.pause_ms,
                "open_requests": run.open_requests(),
                "lag_ms": run.ended_ms - run.stop_ms(run.quiet_ms),
                "quiet_ms": quiet_ms,
                "stop_ms": stop_ms,
                "late_responses": run.late_responses(stop_ms),
                "is_late_change": run.last_change_ms > stop_ms,
                **changed_metrics(run.progress, stop_ms),
                "is_rejected": run.row.valid and place in shorter and place not in usual,
                "is_accepted": not run.row.valid and (is_late or (place in usual and place not in shorter)),
            }
        )
    return rows


def _norms(runs: Sequence[RunTimes], quiet_ms: int) -> tuple[Collection[int], Collection[int]]:
    """The places in `runs` of those that expectations reject: first for the runs as they are, then for the runs as
    they would be with the quiet time `quiet_ms`. Both are empty if that would change no run."""
    stops_ms = [run.stop_ms(quiet_ms) for run in runs]
    if not any(
        run.late_requests(stop_ms) or run.last_change_ms > stop_ms for run, stop_ms in zip(runs, stops_ms, strict=True)
    ):
        return (), ()  # the same in both cases, so skip the slow comparison
    usual = judge([outcome(run, run.stop_ms(run.quiet_ms)) for run in runs])
    return usual, judge([outcome(run, stop_ms) for run, stop_ms in zip(runs, stops_ms, strict=True)])


def outcome(run: RunTimes, stop_ms: float) -> RunOutcome:
    """The outcome of `run` for expectations if it had ended at `stop_ms`; without its last picture if the picture
    changed later."""
    late = {id(request) for request in run.late_requests(stop_ms)}
    # The browser's own requests are not counted. Late requests are marked as such, so that they are not counted either.
    requests = [replace(one, by_browser=one.by_browser or id(one) in late) for one in run.requests]
    counts = read_request_log(run.folder / REQUEST_LOG, requests)
    picture = None if run.last_change_ms > stop_ms else read_last_frame(run.folder)
    return RunOutcome(counts.requests, counts.missed, counts.exchanges, picture)


def summary(table: pd.DataFrame) -> pd.DataFrame:
    """A row for each network and quiet time of `table` (`RunChanges.table`).

    Columns: network, quiet_ms, sites, runs (valid ones); late_responses, late_changes (shares of runs with any);
    METRICS with `_median`, `_p95`, `_worst` (of the absolute changes, ms); rejected, accepted (attempts).
    """
    rows = []
    for (network, quiet_ms), attempts in table.groupby(["network", "quiet_ms"], sort=False):
        runs = attempts[attempts["valid"]]
        if runs.empty:
            continue
        changes = {
            f"{name}_{statistic}": np.percentile(runs[name].abs(), percent)
            for name in METRICS
            for statistic, percent in STATISTICS.items()
        }
        rows.append(
            {
                "network": network,
                "quiet_ms": quiet_ms,
                "sites": runs["site"].nunique(),
                "runs": len(runs),
                "late_responses": (runs["late_responses"] > 0).mean(),
                "late_changes": runs["is_late_change"].mean(),
                **changes,
                "rejected": int(attempts["is_rejected"].sum()),
                "accepted": int(attempts["is_accepted"].sum()),
            }
        )
    return pd.DataFrame(rows)


def sufficient_ms(runs: pd.DataFrame) -> int | None:
    """The shortest quiet time of `runs` (of one network, from `RunChanges.table`) that would have changed nothing and
    is at least MARGIN times the longest pause; None if there is none."""
    for quiet_ms, of_time in runs[runs["valid"]].groupby("quiet_ms"):
        changed = of_time["late_responses"].any() or of_time["is_late_change"].any() or of_time["is_rejected"].any()
        if not changed and quiet_ms >= MARGIN * of_time["pause_ms"].max():
            return int(quiet_ms)
    return None


def _is_late_fault(run: RunTimes, stop_ms: float) -> bool:
    """Whether a gate rejected `run` because of a request that began after `stop_ms`, and no earlier request was for
    the same URL."""
    # Gates name the request at the end of their reason, by the beginning of its URL.
    text = str(run.row.reason).removesuffix("…")
    faults = [began for request, began, _ in run.spans if text.endswith(f": {request.url[:SHOWN_URL_LENGTH]}")]
    return run.row.gate in REQUEST_GATES and bool(faults) and min(faults) > stop_ms


def _steps(text: str) -> tuple[tuple[float, int], ...]:
    """Visual progress as numbers, from the notation of Browsertime's script (`0=0, 66=20, 766=100`)."""
    pairs = (step.strip().partition("=") for step in text.split(","))
    return tuple((float(time_ms), int(share)) for time_ms, _, share in pairs)


def _since(time_s: float | None, start_ms: float) -> float | None:
    return None if time_s is None else 1000 * time_s - start_ms


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
