"""The figure of a dose: changes against the share of waiting, with the line to loads that do not wait."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures.style import BLACK, ORANGE, PAGE_INCHES, SKY, SMALL, figure_style, in_paper_order, percent_axis
from analysis.runs import records, rows_of
from analysis.statistics.hypotheses import Pair
from analysis.text import label
from studies.dose.changes import ALL_PAGES, FEW, MANY, METRICS, SLOPE_STEP

ROW_INCHES = 1.75
TICKS = 4
COLORS = {ALL_PAGES: (BLACK, "o"), FEW: (SKY, "s"), MANY: (ORANGE, "D")}
# The marks of groups are so far apart that their intervals do not hide each other, in shares of waiting.
SHIFT = 0.006
# The size of the mark of the whole processor; that of a share is smaller by this share.
LARGEST = 7.0


def draw(table: pd.DataFrame, pair: Pair) -> Figure:
    """Draw the rows of `pair` in the table of `studies.dose.changes.changes`: a row of panels for each network, a panel
    for each metric. A filled mark is measured; a hollow one, at no waiting, is extrapolated."""
    rows = rows_of(table, **pair._asdict())
    networks = in_paper_order(rows["network"].unique())
    metrics = [name for name in METRICS if (rows["metric"] == name).any()]
    groups = [name for name in COLORS if (rows["pages"] == name).any()]
    with figure_style():
        size = PAGE_INCHES, 0.9 + ROW_INCHES * len(networks)
        figure = Figure(figsize=size, layout="constrained")
        panels = figure.subplots(len(networks), len(metrics), sharex=True, sharey="row", squeeze=False)
        for of_network, network in zip(panels, networks, strict=True):
            for axes, metric in zip(of_network, metrics, strict=True):
                for number, group in enumerate(groups):
                    of_group = records(rows_of(rows, network=network, metric=metric, pages=group))
                    _draw_group(axes, of_group, *COLORS[group], SHIFT * number)
                axes.axhline(0, color="0.4", linewidth=0.7)
                axes.set_title(f"{label(metric)} on {label(network)}")
            percent_axis(of_network[0].yaxis, TICKS)
        panels[0, 0].set_xlim(-0.03, rows["waiting"].max() + 0.05)
        percent_axis(panels[0, 0].xaxis, TICKS)
        figure.supxlabel("share of waiting in the time in which threads had work", fontsize=8)
        figure.supylabel("change (negative is faster)", fontsize=8)
        if len(groups) > 1:
            handles = [
                panels[0, 0].plot([], [], mark, color=color, label=name)[0] for name, (color, mark) in COLORS.items()
            ]
            figure.legend(handles=handles, loc="outside upper center", ncols=len(handles))
        return figure


def _draw_group(axes: Axes, rows: list[dict[str, Any]], color: str, mark: str, shift: float) -> None:
    for row in rows:
        x, is_measured = row["waiting"] + shift, np.isfinite(row["share"])
        axes.plot([x, x], [row["gain_low"], row["gain_high"]], color=color, linewidth=1)
        face = color if is_measured else "none"
        size = LARGEST * row["share"] if is_measured else LARGEST / 2
        axes.plot(x, row["gain"], mark, color=color, markerfacecolor=face, markersize=size)
        if is_measured:
            continue
        if np.isfinite(row["gain"]):
            _draw_line(axes, row, max(other["waiting"] for other in rows), color)
        elif row["refusal"]:
            axes.annotate("not extrapolated", (0.03, 0.04), xycoords="axes fraction", fontsize=SMALL, color="0.4")


def _draw_line(axes: Axes, row: Mapping[str, Any], most: float, color: str) -> None:
    waits = np.linspace(0, most)
    logs = np.log1p(row["gain"]) + waits / SLOPE_STEP * np.log1p(row["slope"])
    axes.plot(waits, np.expm1(logs), color=color, linewidth=1, linestyle="--")
