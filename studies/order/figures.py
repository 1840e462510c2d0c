"""The figures of the orders of service: changes over all pages, and which response's data arrived when on one page."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from analysis.figures.style import (
    BLACK,
    BLUE,
    DIRECTIONS,
    ORANGE,
    PAGE_INCHES,
    SKY,
    SMALL,
    VERMILION,
    figure_style,
    in_paper_order,
    intervals,
    percent_axis,
)
from analysis.runs import rows_of
from analysis.statistics.hypotheses import Pair
from analysis.text import label
from studies.order.changes import METRICS
from studies.order.orders import ORDERS, SCHEDULERS

ROW_INCHES, PANEL_INCHES = 0.3, 0.62
TICKS = 3
# The colours and marks of the metrics.
MARKS = {"lcp": (BLACK, "o"), "fcp": (ORANGE, "s"), "si": (SKY, "D")}
# The parts of an area, from the bottom: the picture that is the largest paint, then responses by the urgency of their
# requests compared with the picture's.
PICTURE, MORE_URGENT, AS_URGENT, LESS_URGENT = "the largest picture", "more urgent", "as urgent", "less urgent"
COLORS = {PICTURE: VERMILION, MORE_URGENT: BLUE, AS_URGENT: "0.6", LESS_URGENT: "0.85"}
# The areas' width in time: so many parts of the panel's.
STEPS = 120


def draw_changes(table: pd.DataFrame, pairs: Sequence[Pair]) -> Figure:
    """Draw the table of `studies.order.changes.changes`: a panel for each network, a row for each of `pairs`."""
    networks = in_paper_order(table["network"].unique())
    with figure_style():
        figure = Figure(figsize=(PAGE_INCHES, 0.9 + ROW_INCHES * len(pairs)), layout="constrained")
        panels = np.atleast_1d(figure.subplots(1, len(networks), sharey=True))
        for axes, network in zip(panels, networks, strict=True):
            for metric, shift in zip(METRICS, (-0.24, 0.0, 0.24), strict=True):
                color, mark = MARKS[metric]
                rows = rows_of(table, network=network, metric=metric).set_index([*Pair._fields])
                rows = rows.reindex(pd.MultiIndex.from_tuples(pairs))
                ys = np.arange(len(pairs)) + shift
                intervals(axes, rows["gain_low"], rows["gain_high"], ys, color)
                axes.plot(rows["gain"], ys, mark, color=color, markersize=3.2, label=label(metric))
            axes.axvline(0, color="0.4", linewidth=0.7)
            axes.set_title(label(network))
            percent_axis(axes.xaxis, TICKS)
        panels[0].set_yticks(range(len(pairs)), [pair_name(pair) for pair in pairs], fontsize=SMALL)
        panels[0].set_ylim(len(pairs) - 0.4, -0.6)
        figure.supxlabel(DIRECTIONS, fontsize=8)
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=len(METRICS))
        return figure


def pair_name(pair: Pair) -> str:
    """The pair in words: `fair (2 connections)`, instead of urgency, or `fair: 1 connection instead of 2`."""
    reference, compared = (SCHEDULERS[name] for name in pair)
    if reference == compared:
        return f"{compared}: 1 connection instead of 2"
    return f"{compared} ({connections(pair.compared)})"


def connections(protocol: str) -> str:
    """How many connections `protocol` emulates, in words."""
    return "1 connection" if any(protocol == order.of_one for order in ORDERS) else "2 connections"


def draw_arrivals(loads: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Draw a panel for each protocol, by its name: the rate at which data of each response arrived at the browser, and
    when the largest picture or text was painted. `loads`: the documents of `studies.order.measure.STREAMS`."""
    end_ms = 1.08 * max(load["largest"]["painted_ms"] for load in loads.values())
    edges_ms = np.linspace(0, end_ms, STEPS + 1)
    with figure_style():
        figure = Figure(figsize=(PAGE_INCHES, 0.9 + PANEL_INCHES * len(loads)), layout="constrained")
        panels = figure.subplots(len(loads), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
        for axes, (protocol, load) in zip(panels, loads.items(), strict=True):
            _areas(axes, load, edges_ms)
            axes.set_ylabel(row_name(protocol), rotation=0, ha="right", va="center", fontsize=SMALL)
        panels[-1].set_xlabel("ms since the navigation")
        panels[0].set_xlim(0, end_ms)
        figure.supylabel("data that arrived [Mbit/s]", fontsize=8)
        keys = [Patch(color=color, label=name) for name, color in COLORS.items()]
        figure.legend(handles=keys, loc="outside upper center", ncols=len(keys))
        return figure


def row_name(protocol: str) -> str:
    """A protocol by its order, and by how many connections it emulates."""
    if protocol not in SCHEDULERS:
        return label(protocol)
    return f"{SCHEDULERS[protocol]}\n{connections(protocol)}"


def _areas(axes: Axes, load: Mapping[str, Any], edges_ms: Any) -> None:
    rates = dict.fromkeys(COLORS, np.zeros(STEPS))
    step_ms = edges_ms[1] - edges_ms[0]
    for response in load["responses"]:
        times_ms, sizes = np.array(response["arrivals"]).reshape(-1, 2).T
        arrived, _ = np.histogram(times_ms, edges_ms, weights=sizes)
        part = _part(response, load["largest"])
        rates[part] = rates[part] + arrived * 8 / step_ms / 1000
    middles_ms = edges_ms[:-1] + step_ms / 2
    axes.stackplot(middles_ms, *rates.values(), colors=list(COLORS.values()), step="mid", linewidth=0)
    axes.axvline(load["largest"]["painted_ms"], color=BLACK, linewidth=1)
    axes.annotate(" LCP", (load["largest"]["painted_ms"], 0.78), xycoords=("data", "axes fraction"), fontsize=SMALL)


def _part(response: Mapping[str, Any], largest: Mapping[str, Any]) -> str:
    if largest["urgency"] is None:
        return AS_URGENT
    if response["url"] == largest["url"]:
        return PICTURE
    if response["urgency"] == largest["urgency"]:
        return AS_URGENT
    return MORE_URGENT if response["urgency"] < largest["urgency"] else LESS_URGENT
