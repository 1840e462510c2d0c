"""The metrics of a page load. A new metric is an entry in `METRICS`: table, report and figures are made from the list.

Campaigns that lack a new metric's column stay readable and can be continued (`measure.table`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from measure.run.evidence import Evidence


@dataclass(frozen=True)
class Metric:
    """A number that a run has: `name` is its column in `runs.csv`, `label` is what figures and tables call it, and
    `title` what that stands for.

    `read` takes it from a run's evidence, None when it is not there. `from_film`: whether only filmed runs have it.
    `is_time`: whether it is a time, of which less is better: reports compare protocols by times alone.
    """

    name: str
    unit: str
    label: str
    read: Callable[[Evidence], float | None]
    from_film: bool = False
    title: str = ""
    is_time: bool = True


def _visual(name: str) -> Callable[[Evidence], float | None]:
    return lambda evidence: None if evidence.visual is None else float(getattr(evidence.visual, name))


def goodput_mbps(evidence: Evidence) -> float | None:
    """The content of responses that had come when the load event began, over the time until then (PLT).

    After RFC 2647, section 3.17: what reached the receiver and was of use to it, without what was lost or sent again,
    and here without all headers. Content is counted as it was transferred, with its coding (RFC 9110, section 8.4).
    """
    return None if evidence.transfer is None else _mbps(evidence, evidence.transfer.content_bytes)


def down_utilisation(evidence: Evidence) -> float | None:
    """The share of the downlink that the page used, from the start of the navigation to the load event (PLT): the bytes
    of IP packets that the browser received (`Transfer`), over what the network's rate could have carried.

    After RFC 5136, sections 3.3 to 3.5: the utilisation of a link at the IP layer over an interval. Background flows
    are not in it. None where the rate is not constant, or there is none.
    """
    return _utilisation(evidence, evidence.transfer.received_bytes, evidence.down_mbps) if evidence.transfer else None


def up_utilisation(evidence: Evidence) -> float | None:
    """The same of the uplink. None over TCP, too, whose acknowledgements no browser sees."""
    return _utilisation(evidence, evidence.transfer.sent_bytes, evidence.up_mbps) if evidence.transfer else None


def _utilisation(evidence: Evidence, size_bytes: int | None, link_mbps: float | None) -> float | None:
    used_mbps = None if size_bytes is None else _mbps(evidence, size_bytes)
    return None if used_mbps is None or not link_mbps else used_mbps / link_mbps


def _mbps(evidence: Evidence, size_bytes: int) -> float | None:
    return 8 * size_bytes / evidence.plt / 1e3 if evidence.plt else None


METRICS: list[Metric] = [
    Metric("fvc", "ms", "FVC", _visual("fvc"), from_film=True, title="first visual change"),
    Metric("lvc", "ms", "LVC", _visual("lvc"), from_film=True, title="last visual change"),
    Metric("vc85", "ms", "VC85", _visual("vc85"), from_film=True, title="85 % visually complete"),
    Metric("si", "ms", "SI", _visual("si"), from_film=True, title="Speed Index"),
    Metric("plt", "ms", "PLT", lambda evidence: evidence.plt, title="page load time"),
    Metric("goodput_mbps", "Mbit/s", "goodput", goodput_mbps, is_time=False),
    Metric("down_utilisation", "", "downlink used", down_utilisation, is_time=False),
    Metric("up_utilisation", "", "uplink used", up_utilisation, is_time=False),
]


def metric_names() -> tuple[str, ...]:
    """The names of all metrics, in the order of the table."""
    return tuple(metric.name for metric in METRICS)


def time_names() -> tuple[str, ...]:
    """The names of those that are times."""
    return tuple(metric.name for metric in METRICS if metric.is_time)


def read_metrics(evidence: Evidence) -> dict[str, float | None]:
    """Every metric of a run, by name."""
    return {metric.name: metric.read(evidence) for metric in METRICS}
