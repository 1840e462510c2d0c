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
    """

    name: str
    unit: str
    label: str
    read: Callable[[Evidence], float | None]
    from_film: bool = False
    title: str = ""


def _visual(name: str) -> Callable[[Evidence], float | None]:
    return lambda evidence: None if evidence.visual is None else float(getattr(evidence.visual, name))


METRICS: list[Metric] = [
    Metric("fvc", "ms", "FVC", _visual("fvc"), from_film=True, title="first visual change"),
    Metric("lvc", "ms", "LVC", _visual("lvc"), from_film=True, title="last visual change"),
    Metric("vc85", "ms", "VC85", _visual("vc85"), from_film=True, title="85 % visually complete"),
    Metric("si", "ms", "SI", _visual("si"), from_film=True, title="Speed Index"),
    Metric("plt", "ms", "PLT", lambda evidence: evidence.plt, title="page load time"),
]


def metric_names() -> tuple[str, ...]:
    """The names of all metrics, in the order of the table."""
    return tuple(metric.name for metric in METRICS)


def read_metrics(evidence: Evidence) -> dict[str, float | None]:
    """Every metric of a run, by name."""
    return {metric.name: metric.read(evidence) for metric in METRICS}
