"""Changes with their intervals as lines of a page: a group for each metric, with an axis of its own."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from analysis.figures.style import NETWORKS, title_with_label
from analysis.report.charts import Axis, interval, scale
from analysis.text import label, percent, percent_interval


@dataclass(frozen=True)
class Line:
    """A change in a `metric` on a `network`, of what is called `name`; the `kind` of its verdict, a class of the style
    sheet, and the verdict in `words`; the `change` (a share), with its interval from `low` to `high` (NaN if unknown);
    and the `margin` within which a change counts as equivalent (NaN if there is none)."""

    metric: str
    network: str
    name: str
    kind: str
    words: str
    change: float
    low: float
    high: float
    margin: float

    @property
    def numbers(self) -> str:
        """The change and its interval in percent."""
        if not math.isfinite(self.change):
            return "no runs to compare"
        interval = percent_interval(self.low, self.high) if math.isfinite(self.low) else "too few runs for an interval"
        return f"{percent(self.change)} ({interval})"

    @property
    def text(self) -> str:
        """The line as a sentence."""
        return f"{label(self.metric)} on {label(self.network)}, {self.name}: {self.words}, {self.numbers}."


def grouped(lines: Sequence[Line], names: str, faster: str) -> list[dict[str, Any]]:
    """The `lines` by metric and network, with their drawings, for the macro of lines.html.j2. `names` says what their
    names are, in the plural; `faster` is the heading of changes below 0."""
    of_metrics = {
        metric: [line for line in lines if line.metric == metric]
        for metric in dict.fromkeys(line.metric for line in lines)
    }
    return [_group(metric, of_metric) | {"names": names, "faster": faster} for metric, of_metric in of_metrics.items()]


def _group(metric: str, lines: Sequence[Line]) -> dict[str, Any]:
    ends = [end for line in lines for end in (line.low, line.high)]
    axis = Axis.of([line.change for line in lines], ends, [line.margin for line in lines])
    networks = {
        network: [(line, _drawing(line, axis)) for line in lines if line.network == network]
        for network in dict.fromkeys(line.network for line in lines)
    }
    return {
        "metric": metric,
        "title": title_with_label(metric),
        "has_one_name": len({line.name for line in lines}) == 1,
        "networks": [({"name": label(name), "place": NETWORKS.get(name, "")}, rows) for name, rows in networks.items()],
        "scale": scale(axis),
    }


def _drawing(line: Line, axis: Axis) -> Any:
    return interval(axis, line.change, line.low, line.high, line.margin, line.text)
