"""The gain of each pair over all sites with its intervals, by network and metric."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from analysis.figures.style import BLUE, COLUMN_INCHES, PAGE_INCHES, SMALL, VERMILION, figure_style
from analysis.runs import rows_of
from analysis.statistics.contrasts import RATIO
from analysis.statistics.hypotheses import Pair
from analysis.statistics.outcomes import EQUAL_ON_AVERAGE, EQUIVALENT, FASTER, NOT_DECIDED, SLOWER
from analysis.text import label

VERDICT_MARKS = {FASTER: (BLUE, "<"), SLOWER: (VERMILION, ">"), EQUIVALENT: ("0.2", "s"), NOT_DECIDED: ("0.5", "o")}
VERDICT_MARKS |= {EQUAL_ON_AVERAGE: ("0.2", "D")}
# How many ticks with their percentages fit on an axis: on one of several panels, and on one as wide as a column.
PANEL_TICKS, COLUMN_TICKS = 3, 5


def draw(table: pd.DataFrame, networks: Sequence[str], metrics: Sequence[str], pairs: Sequence[Pair]) -> Figure:
    """Draw `table`, which is from `over_sites`: a panel for each metric, a row for each network and pair. A row shows
    the paper's mean gain with its interval, and below it the gain of the ratios within blocks."""
    rows = [(network, pair) for network in networks for pair in pairs]
    with figure_style():
        figure = Figure(figsize=(PAGE_INCHES, 0.9 + 0.19 * len(rows)), layout="constrained")
        panels = np.atleast_1d(figure.subplots(1, len(metrics), sharey=True))
        index = table.set_index(["network", "reference", "compared", "metric"]).sort_index()
        for axes, metric in zip(panels, metrics, strict=True):
            for y, (network, pair) in enumerate(rows):
                key = (network, *pair, metric)
                if key not in index.index:
                    continue
                row = index.loc[key]
                for up, name, low, high, color, marker in (
                    (0.15, "gain", "gain_low", "gain_high", BLUE, "o"),
                    (-0.2, *RATIO, VERMILION, "D"),
                ):
                    axes.plot([row[low], row[high]], [y - up] * 2, color=color, linewidth=1)
                    axes.plot(row[name], y - up, marker, color=color, markersize=3)
            axes.set_title(label(metric))
            axes.tick_params(axis="x", labelsize=SMALL)
            _rows(axes, networks, pairs, PANEL_TICKS)
        panels[0].tick_params(axis="y", labelsize=SMALL)
        panels[0].plot([], [], "o-", color=BLUE, markersize=3, label="gain of means")
        panels[0].plot([], [], "D-", color=VERMILION, markersize=3, label="gain within blocks")
        figure.legend(loc="outside upper center", ncols=2)
        return figure


def draw_confirmatory(table: pd.DataFrame, networks: Sequence[str], metric: str, pairs: Sequence[Pair]) -> Figure:
    """Draw one metric of `table`, which is from `confirmatory`, as wide as a column: a row for each network and pair
    with its gain, interval and margin of equivalence, in the colour and marker of its verdict."""
    rows = [(network, pair) for network in networks for pair in pairs]
    index = rows_of(table, metric=metric).set_index(["network", "reference", "compared"]).sort_index()
    with figure_style():
        figure = Figure(figsize=(COLUMN_INCHES, 1.3 + 0.3 * len(rows)), layout="constrained")
        axes = figure.subplots()
        _rows(axes, networks, pairs, COLUMN_TICKS)
        for y, (network, pair) in enumerate(rows):
            row = index.loc[(network, *pair)]
            color, marker = VERDICT_MARKS[row["verdict"]]
            margin = row["margin"]
            axes.fill_between([1 / (1 + margin) - 1, margin], y - 0.38, y + 0.38, color="0.9", linewidth=0)
            if np.isfinite(row["gain"]):
                axes.plot([row["gain_low"], row["gain_high"]], [y, y], color=color, linewidth=1.6)
                axes.plot(row["gain"], y, marker, color=color, markersize=6)
            else:
                middle = axes.get_yaxis_transform()
                axes.text(0.5, y, "no runs to compare", transform=middle, ha="center", va="center", style="italic")
        axes.set_title(label(metric), fontweight="bold")
        axes.set_xlabel("\N{LEFTWARDS ARROW} faster      gain      slower \N{RIGHTWARDS ARROW}")
        for verdict, (color, marker) in VERDICT_MARKS.items():
            if (table["verdict"] == verdict).any():
                axes.plot([], [], marker, color=color, linestyle="", label=verdict)
        axes.fill_between([], [], color="0.9", label="counts as equivalent")
        figure.legend(loc="outside lower center", ncols=2)
        return figure


def _rows(axes: Axes, networks: Sequence[str], pairs: Sequence[Pair], ticks: int) -> None:
    """Label the rows of `axes`, each a network and a pair, mark a gain of 0, and set about `ticks` ticks."""
    labels = [
        f"{label(network) + '   ' if not place else ''}{label(pair.compared)} / {label(pair.reference)}"
        for network in networks
        for place, pair in enumerate(pairs)
    ]
    axes.axvline(0, color="0.4", linewidth=0.7)
    axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g} %".replace("-", "\N{MINUS SIGN}"))
    axes.xaxis.set_major_locator(MaxNLocator(ticks))
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    for place in range(1, len(networks)):
        axes.axhline(place * len(pairs) - 0.5, color="0.7", linewidth=0.6)
