"""The loads of a waterfall: which runs are shown, and their requests, from their HARs."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from analysis.figures.films import TYPICAL_BY, nearest_to_medians
from analysis.runs import metrics_in, rows_of
from analysis.text import listing
from base.bounded import parse_json
from base.errors import EyelevelError
from dataset.har import navigated_s, started_s
from dataset.navigation import Navigation, read_navigation
from dataset.reading import read_text
from dataset.run_files import HAR, is_of_runs

# The phases of a request's time, in this order.
PHASES = {
    "queue": "queueing: wanted, but not begun by the browser, or waiting for a connection",
    "dns": "DNS",
    "tcp": "TCP handshake",
    "tls": "TLS handshake",
    "quic": "QUIC handshake, TLS included",
    "early": "QUIC handshake of a resumed connection, sent with the request (0-RTT)",
    "wait": "wait: from the request to the first byte of its response",
    "download": "download: the response, to its last byte",
}
# A page cannot show more requests legibly, and a HAR may come from a stranger.
MOST_REQUESTS = 5000


# Two requests may have equal values and still be different requests.
@dataclass(frozen=True, eq=False)
class LoadedRequest:
    """One request of a load. Times are in ms from the navigation.

    `start_ms`: when the page wanted the request; `spans`: when each of its `PHASES` began and ended; `bytes`: the size
    of its response as transferred, None if unknown.
    """

    url: str
    method: str
    kind: str
    priority: str
    protocol: str
    status: int
    bytes: int | None
    connection: str
    server: str
    from_cache: bool
    start_ms: float
    spans: Mapping[str, tuple[float, float]]

    @property
    def end_ms(self) -> float:
        """When its last phase ended."""
        return max((end for _, end in self.spans.values()), default=self.start_ms)

    @property
    def duration_ms(self) -> float:
        """The time from when the page wanted the request until the request ended."""
        return self.end_ms - self.start_ms

    @property
    def over(self) -> str:
        """Its protocol, and whether it was sent as early data."""
        return f"{self.protocol} 0-RTT" if "early" in self.spans else self.protocol

    def took_ms(self, phase: str) -> float | None:
        """How long a phase took; None if the request had none."""
        return self.spans[phase][1] - self.spans[phase][0] if phase in self.spans else None


@dataclass(frozen=True)
class Load:
    """One run: its place in the campaign, its metrics, its requests in the order in which they were wanted, and its HAR
    as text. `choice` says why this run was chosen. `largest`: its largest contentful paint, with the fields of
    `measure.run.largest_paint.LargestPaint`; empty if unknown."""

    campaign: Path
    site: str
    network: str
    protocol: str
    run: int
    folder: Path
    metrics: Mapping[str, float]
    requests: tuple[LoadedRequest, ...]
    har: str
    choice: str
    largest: Mapping[str, Any] = field(default_factory=dict)

    @property
    def end_ms(self) -> float:
        """When the load was over: after the last request, the last visual change, the largest paint and the load
        event."""
        ends = [self.metrics[name] for name in ("lvc", "lcp", "plt") if name in self.metrics]
        return max([request.end_ms for request in self.requests] + ends, default=0.0)


def median_run(
    runs: pd.DataFrame, site: str, network: str, protocol: str, metric: str | None = None, within: Path | None = None
) -> tuple[Mapping[str, Any], str]:
    """The row of a setting's median run, and how it was chosen, as a sentence; `runs` are a campaign's.

    The median run is the run that counts whose `metric` is nearest to the median. Without `metric`, it is the run whose
    SI and PLT together are nearest, by the sum of both distances, each as a share of its median. The first of equals is
    taken. If earlier runs of a campaign were made elsewhere, only runs with a HAR in the campaign's folder, `within`,
    are considered. Raises EyelevelError if there is no such run.
    """
    if metric and metric not in runs:
        raise EyelevelError(f"the runs have no metric {metric}; they have {listing(metrics_in(runs))}")
    names = [metric] if metric else [name for name in TYPICAL_BY if name in runs and runs[name].notna().any()]
    counting = rows_of(runs, valid=True, site=site, network=network, protocol=protocol).dropna(subset=names)
    if counting.empty or not names:
        having = f" and has {metric}" if metric else ""
        raise EyelevelError(f"no run of {site} on {network} over {protocol} counts{having}")
    nearest = nearest_to_medians(counting, names)
    folders = counting["folder"].astype(str) if within and "folder" in counting else {}
    present = [place for place in nearest if within and place in folders and (within / folders[place] / HAR).is_file()]
    row: dict[str, Any] = counting.loc[(present or nearest)[0]].to_dict()
    called = " and ".join(name.upper() for name in names)
    whose = "" if not present or len(present) == len(counting) else f" of the {len(present)} whose requests are here"
    why = f"of {len(counting)} runs that count, the nearest{whose} to their median {called}"
    return row, (why if len(counting) > 1 else "the only run that counts")


def named_run(runs: pd.DataFrame, name: str) -> tuple[Mapping[str, Any], str]:
    """The row of the attempt whose folder ends with `name` (`quic/2-1`, `demo-news/lte/quic/2-1`), and how it was
    chosen.

    Raises EyelevelError if there is no such attempt, or several.
    """
    folders = runs["folder"].astype(str) if "folder" in runs else pd.Series("", runs.index)
    named = runs[folders.str.endswith("/" + name.strip("/")) | (folders == name.strip("/"))]
    if named.empty:
        raise EyelevelError(f"no run's folder ends with {name!r}; write it as SITE/NETWORK/PROTOCOL/RUN-ATTEMPT")
    if len(named) > 1:
        several = listing([str(folder) for folder in named["folder"][:4]])
        raise EyelevelError(f"{len(named)} runs' folders end with {name!r}: {several}; name more of the one you mean")
    row: dict[str, Any] = named.iloc[0].to_dict()
    return row, "asked for" if row["valid"] else f"asked for; it does not count: {row['reason']}"


def read_load(campaign: Path, row: Mapping[str, Any], choice: str) -> Load:
    """The load of a `row` of the runs of the `campaign`, from its HAR. Raises EyelevelError."""
    folder = campaign / str(row.get("folder") or "?")
    path = folder / HAR
    if path.exists() and not is_of_runs(path, campaign):
        raise EyelevelError(f"{path} is no plain file among the campaign's runs: copy it to where it seems to be")
    try:
        text = read_text(path)
        requests = requests_of(parse_json(text.encode()), read_navigation(folder))
    except FileNotFoundError as error:
        raise EyelevelError(f"{path}: {error.strerror}; a waterfall needs the run's HAR") from None
    except (ValueError, KeyError, TypeError, AttributeError, IndexError, EOFError) as error:
        raise EyelevelError(f"{path} is no HAR as Browsertime writes it: {error!r}") from None
    metrics = {name: float(row[name]) for name in metrics_in(pd.DataFrame([row])) if math.isfinite(float(row[name]))}
    place = (str(row["site"]), str(row["network"]), str(row["protocol"]), int(row["run"]))
    return Load(campaign, *place, folder, metrics, requests, text, choice)


def requests_of(har: Mapping[str, Any], navigation: Navigation | None = None) -> tuple[LoadedRequest, ...]:
    """The requests of the page of a `har` in the order in which they were wanted; of all pages since the first
    `navigation` if one page led to another. A broken HAR raises various errors."""
    began_s, page, entries = navigated_s(har), har["log"]["pages"][-1]["id"], har["log"]["entries"]
    if navigation and navigation.followed_ms:
        began_s = navigation.began_ms / 1000
        entries = [entry for entry in entries if started_s(entry) >= began_s]
    else:
        entries = [entry for entry in entries if entry.get("pageref", page) == page]
    pages_s = {page["id"]: started_s(page) for page in har["log"]["pages"]}
    requests = [
        _request(entry, 1000 * (started_s(entry) - began_s), 1000 * (pages_s[entry.get("pageref", page)] - began_s))
        for entry in entries[:MOST_REQUESTS]
    ]
    return tuple(sorted(requests, key=lambda request: request.start_ms))


def _request(entry: Mapping[str, Any], began_ms: float, page_ms: float) -> LoadedRequest:
    """The request of a HAR's entry. The browser began it at `began_ms`, after it had waited in a queue; its page was
    begun at `page_ms`."""
    took = {name: max(float(value), 0.0) for name, value in entry["timings"].items() if isinstance(value, int | float)}
    response, protocol = entry["response"], str(entry["response"]["httpVersion"]).lower()
    connect, tls = took.get("connect", 0.0), took.get("ssl", 0.0)
    before, wait = took.get("blocked", 0.0) + took.get("dns", 0.0), took.get("send", 0.0) + took.get("wait", 0.0)
    # The HAR does not mention early data, which is sent during the handshake: it counts the handshake and the wait in
    # full, so its response seems to come later, by up to one handshake, than its first data.
    first_ms = [page_ms + float(chunk["ts"]) for chunk in entry.get("_chunks", ())[:1]]
    is_early = protocol == "h3" and any(at_ms < began_ms + before + 0.8 * connect + wait for at_ms in first_ms)
    lengths = {
        "queue": took.get("_queued", 0.0) + took.get("blocked", 0.0),
        "dns": took.get("dns", 0.0),
        # In a HAR, TLS is a part of connecting; a QUIC handshake consists entirely of it.
        "tcp": 0.0 if protocol == "h3" else max(connect - tls, 0.0),
        "tls": 0.0 if protocol == "h3" else min(tls, connect),
        "quic": connect if protocol == "h3" and not is_early else 0.0,
        "early": connect if is_early else 0.0,
        "wait": max(wait - connect, 0.0) if is_early else wait,
        "download": took.get("receive", 0.0),
    }
    start_ms = at_ms = began_ms - took.get("_queued", 0.0)
    spans = {}
    for phase, length in lengths.items():
        if length > 0:
            spans[phase] = (at_ms, at_ms + length)
        at_ms += length
    transferred = response.get("_transferSize", response.get("bodySize", -1))
    return LoadedRequest(
        url=str(entry["request"]["url"]),
        method=str(entry["request"]["method"]),
        kind=str(entry.get("_resourceType") or response["content"].get("mimeType", "").partition(";")[0]),
        priority=str(entry.get("_priority") or ""),
        protocol=protocol,
        status=int(response["status"]),
        bytes=int(transferred) if transferred >= 0 else None,
        connection=str(entry.get("connection") or ""),
        server=str(entry.get("serverIPAddress") or ""),
        from_cache=bool(response.get("fromDiskCache")) or not any(took.values()),
        start_ms=start_ms,
        spans=spans,
    )
