"""The metrics of a page load. A new metric is an entry in `METRICS`; table, report and figures are made from this list.

Campaigns that lack a new metric's column stay readable and can be resumed (`dataset.table`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dataset.columns import Column

if TYPE_CHECKING:
    from measure.run.evidence import Evidence


# A task of at least this duration is long (W3C Long Tasks).
LONG_TASK_MS = 50


@dataclass(frozen=True)
class Metric:
    """A metric of a run.

    `name`: its column in `runs.csv`; `label`: its name in figures and tables; `title`: the full form of the label;
    `description`: for docs/runs-csv.md. `read` computes it from a run's evidence; None if it is missing there.
    `from_film`: only filmed runs have it. `is_time`: it is a moment of the load, so less is better and it is never 0;
    reports compare protocols by the ratios of these, and hypotheses can be declared of them. `is_of_web`: web
    developers use it and the paper does not; those that are no times have a separate table. `is_count` and `is_share`
    are those of its column.
    """

    name: str
    unit: str
    label: str
    read: Callable[[Evidence], float | None]
    from_film: bool = False
    title: str = ""
    is_time: bool = True
    is_of_web: bool = False
    description: str = ""
    is_count: bool = False
    is_share: bool = False

    @property
    def column(self) -> Column:
        """The metric's column in `runs.csv`."""
        description = self.description or self.title or self.label
        return Column(self.name, self.unit, description, self.is_count, self.is_share)


def in_words(name: str, value: float | None) -> str:
    """The value of the metric `name` with its label and unit: `SI 812 ms`, `downlink used 43.1 %`; a metric of another
    version has only its name."""
    metric = next((one for one in METRICS if one.name == name), None)
    label, unit = (metric.label, metric.unit) if metric else (name, "")
    if value is None:
        text = "unknown"
    elif metric and metric.is_share:
        text = f"{100 * value:.1f} %"
    else:
        text = f"{value:,.0f}" if unit == "ms" or (metric and metric.is_count) else f"{value:.3g}"
        text = f"{text} {unit}".rstrip()
    return f"{label} {text}"


def _visual(name: str) -> Callable[[Evidence], float | None]:
    return lambda evidence: None if evidence.visual is None else float(getattr(evidence.visual, name))


def goodput_mbps(evidence: Evidence) -> float | None:
    """The content of responses that had arrived when the load event began, over the time until then (PLT).

    After RFC 2647, section 3.17: the bytes that reached the receiver and were useful to it, without lost or repeated
    bytes, and here also without all headers. Content is counted as transferred, with its coding (RFC 9110, section
    8.4).
    """
    return None if evidence.transfer is None else _mbps(evidence, evidence.transfer.content_bytes)


def down_utilisation(evidence: Evidence) -> float | None:
    """The share of the downlink that the page used from the start of the navigation to the load event (PLT): the bytes
    of IP packets that the browser received (`Transfer`), over the bytes that the network's rate could have carried.

    After RFC 5136, sections 3.3 to 3.5: the utilisation of a link at the IP layer over an interval. Excludes background
    flows. None if the rate varies or is unlimited.
    """
    return _utilisation(evidence, evidence.transfer.received_bytes, evidence.down_mbps) if evidence.transfer else None


def up_utilisation(evidence: Evidence) -> float | None:
    """The same as `down_utilisation` for the uplink. Also None over TCP, since no browser sees TCP's
    acknowledgements."""
    return _utilisation(evidence, evidence.transfer.sent_bytes, evidence.up_mbps) if evidence.transfer else None


def _utilisation(evidence: Evidence, size_bytes: int | None, link_mbps: float | None) -> float | None:
    used_mbps = None if size_bytes is None else _mbps(evidence, size_bytes)
    return None if used_mbps is None or not link_mbps else used_mbps / link_mbps


def _mbps(evidence: Evidence, size_bytes: int) -> float | None:
    return 8 * size_bytes / evidence.plt / 1e3 if evidence.plt else None


def _timing(group: str, name: str) -> Callable[[Evidence], float | None]:
    """Reads a time of the page from Browsertime, in ms from the first navigation; None if it is 0: there was none."""

    def read(evidence: Evidence) -> float | None:
        time_ms = _number(evidence, "timings", group, name)
        return time_ms + evidence.followed_ms if time_ms else None

    return read


def total_blocking_time(evidence: Evidence) -> float | None:
    """How long long tasks kept the page's main thread from responding, in ms: the time of each task beyond 50 ms, from
    the first contentful paint to the load event (PLT) or the largest contentful paint, whichever was later.

    W3C Long Tasks. Tasks are cut and counted as in Lighthouse; only the end differs, which in Lighthouse is Time to
    Interactive. None if the browser does not report long tasks (Firefox), or if there was no paint.
    """
    tasks = _page_value(evidence, "pageinfo", "longTask")
    began_ms = _timing("paintTiming", "first-contentful-paint")(evidence)
    if tasks is None or began_ms is None or evidence.plt is None:
        return None
    ended_ms = max(evidence.plt, evidence.largest.painted_ms if evidence.largest else 0)
    starts_ms = [task["startTime"] + evidence.followed_ms for task in tasks]
    spans_ms = (
        min(start_ms + task["duration"], ended_ms) - max(start_ms, began_ms)
        for start_ms, task in zip(starts_ms, tasks, strict=True)
    )
    return float(sum(max(0.0, span_ms - LONG_TASK_MS) for span_ms in spans_ms))


def cumulative_layout_shift(evidence: Evidence) -> float | None:
    """How much of the page moved unexpectedly, without a unit: the largest session window (W3C Layout Instability)."""
    return _number(evidence, "pageinfo", "cumulativeLayoutShift")


def _transferred(name: str) -> Callable[[Evidence], float | None]:
    return lambda evidence: None if evidence.transfer is None else getattr(evidence.transfer, name)


def _web(
    name: str,
    unit: str,
    label: str,
    read: Callable[[Evidence], float | None],
    title: str,
    description: str,
    *,
    is_time: bool = False,
    is_count: bool = False,
) -> Metric:
    return Metric(
        name, unit, label, read, False, title, is_time, is_of_web=True, description=description, is_count=is_count
    )


def _of_largest(name: str) -> Callable[[Evidence], float | None]:
    return lambda evidence: None if evidence.largest is None else getattr(evidence.largest, name)


def _number(evidence: Evidence, *keys: str) -> float | None:
    value = _page_value(evidence, *keys)
    return None if value is None else float(value)


def _page_value(evidence: Evidence, *keys: str) -> Any:
    """The value under `keys` in the results of Browsertime's scripts; None if the browser does not provide it."""
    for scripts in evidence.page.get("browserScripts", ()):
        value: Any = scripts
        for key in keys:
            value = (value or {}).get(key)
        if value is not None:
            return value
    return None


METRICS: list[Metric] = [
    Metric(
        "fvc",
        "ms",
        "FVC",
        _visual("fvc"),
        from_film=True,
        title="first visual change",
        description="first visual change: the first frame that differs from the blank page",
    ),
    Metric(
        "lvc",
        "ms",
        "LVC",
        _visual("lvc"),
        from_film=True,
        title="last visual change",
        description="last visual change: from when on the page looks as it does in the end",
    ),
    Metric(
        "vc85",
        "ms",
        "VC85",
        _visual("vc85"),
        from_film=True,
        title="85 % visually complete",
        description="85 % visually complete: from when on at least 85 % of the final picture are there",
    ),
    Metric(
        "si",
        "ms",
        "SI",
        _visual("si"),
        from_film=True,
        title="Speed Index",
        description="Speed Index: for how long the page is incomplete, weighted by how incomplete it is",
    ),
    Metric(
        "plt",
        "ms",
        "PLT",
        lambda evidence: evidence.plt,
        title="page load time",
        description="page load time: start of the load event (W3C Navigation Timing)",
    ),
    Metric(
        "goodput_mbps",
        "Mbit/s",
        "goodput",
        goodput_mbps,
        is_time=False,
        description="content of responses that had come when the load event began, over the time until then (RFC 2647, "
        "section 3.17); Chromium only",
    ),
    Metric(
        "down_utilisation",
        "",
        "downlink used",
        down_utilisation,
        title="share of the downlink",
        is_time=False,
        is_share=True,
        description="share of the downlink that the page used in that time, at the IP layer (RFC 5136, sections 3.3 to "
        "3.5); Chromium only, and networks of a constant rate",
    ),
    Metric(
        "up_utilisation",
        "",
        "uplink used",
        up_utilisation,
        title="share of the uplink",
        is_time=False,
        is_share=True,
        description="the same of the uplink; over QUIC only",
    ),
    _web(
        "ttfb",
        "ms",
        "TTFB",
        _timing("navigationTiming", "responseStart"),
        "first byte",
        "first byte of the page's response (`responseStart`, W3C Navigation Timing)",
        is_time=True,
    ),
    _web(
        "dcl",
        "ms",
        "DCL",
        _timing("navigationTiming", "domContentLoadedEventStart"),
        "DOM content loaded",
        "DOM content loaded: start of that event (W3C Navigation Timing)",
        is_time=True,
    ),
    _web(
        "fcp",
        "ms",
        "FCP",
        _timing("paintTiming", "first-contentful-paint"),
        "first contentful paint",
        "first contentful paint (W3C Paint Timing)",
        is_time=True,
    ),
    _web(
        "lcp",
        "ms",
        "LCP",
        _of_largest("painted_ms"),
        "largest contentful paint",
        "largest contentful paint: the last entry until the load is over, without input (W3C Largest Contentful Paint)",
        is_time=True,
    ),
    _web(
        "lcp_requested",
        "ms",
        "LCP requested",
        _of_largest("requested_ms"),
        "",
        "when the request for the picture that is the largest contentful paint was sent; none if that is text",
    ),
    _web(
        "lcp_arrived",
        "ms",
        "LCP arrived",
        _of_largest("arrived_ms"),
        "",
        "when that picture had arrived; Chromium only",
    ),
    _web(
        "lcp_ahead",
        "bytes",
        "ahead of LCP",
        _of_largest("all_ahead_bytes"),
        "",
        "bytes of other responses that arrived between these two moments, on the same connection",
    ),
    _web(
        "tbt",
        "ms",
        "TBT",
        total_blocking_time,
        "total blocking time",
        "total blocking time: what each long task took beyond 50 ms (W3C Long Tasks), from `fcp` to `plt` or "
        "`lcp`, whichever is later; Chromium only",
    ),
    _web(
        "cls",
        "",
        "CLS",
        cumulative_layout_shift,
        "cumulative layout shift",
        "cumulative layout shift: the largest session window (W3C Layout Instability); Chromium only",
    ),
    _web(
        "connections",
        "",
        "connections",
        _transferred("connections"),
        "",
        "connections over which anything came from a server until the load event; Chromium only",
        is_count=True,
    ),
    _web(
        "servers_contacted",
        "",
        "servers contacted",
        _transferred("servers"),
        "",
        "servers (IP addresses) from which anything came until the load event; Chromium only",
        is_count=True,
    ),
    _web(
        "content_bytes",
        "bytes",
        "content",
        _transferred("content_bytes"),
        "",
        "content of responses that had come when the load event began, with its coding (gzip, …); Chromium only",
        is_count=True,
    ),
]
# A column of every run's row, which tables of web metrics show in addition to METRICS.
REQUESTS = "requests"


def metric_names() -> tuple[str, ...]:
    """The names of all metrics, in the order of the table."""
    return tuple(metric.name for metric in METRICS)


def time_names() -> tuple[str, ...]:
    """The names of the times by which protocols are compared."""
    return tuple(metric.name for metric in METRICS if metric.is_time)


def web_names() -> tuple[str, ...]:
    """The names of the metrics that web developers use and that are no times by which protocols are compared."""
    return (*(metric.name for metric in METRICS if metric.is_of_web and not metric.is_time), REQUESTS)


def read_metrics(evidence: Evidence) -> dict[str, float | None]:
    """Every metric of a run, by name."""
    return {metric.name: metric.read(evidence) for metric in METRICS}
