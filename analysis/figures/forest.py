"""The change of each pair over all sites with its intervals, by network and metric; also of several campaigns."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures.style import (
    BLACK,
    COLUMN_INCHES,
    DIRECTIONS,
    ORANGE,
    PAGE_INCHES,
    SMALL,
    VERDICT_MARKS,
    figure_style,
    in_paper_order,
    intervals,
    percent_axis,
    place_label,
    title_with_label,
)
from analysis.runs import rows_of
from analysis.statistics.contrasts import RATIO
from analysis.statistics.hypotheses import Pair
from analysis.statistics.outcomes import EQUAL_ON_AVERAGE
from analysis.text import label

# How many ticks with their percentages fit on an axis: on one of several panels, and on one as wide as a column.
PANEL_TICKS, COLUMN_TICKS = 3, 5
# Above more panels there is only room for abbreviations.
MOST_TITLES = 2
# The space above and below the panels (inches).
ABOVE, BELOW = 0.5, 0.42
# A row of the y axis: a network with a pair, or a network's name above its pairs.
Row = tuple[str, Pair | None]


def rows_by_network(networks: Sequence[str], pairs: Sequence[Pair]) -> list[Row]:
    """The rows of a figure: the networks in the paper's order, each with its pairs below its name; with one pair, a row
    for each network."""
    ordered = in_paper_order(networks)
    if len(pairs) == 1:
        return [(network, pairs[0]) for network in ordered]
    return [(network, pair) for network in ordered for pair in (None, *pairs)]


def draw(table: pd.DataFrame, networks: Sequence[str], metrics: Sequence[str], pairs: Sequence[Pair]) -> Figure:
    """Draw `table`, which is from `over_sites`: a panel for each metric, a row for each network and pair. A row shows
    the paper's change of the means with its interval, and below it the change of the ratios within blocks."""
    rows = rows_by_network(networks, pairs)
    places = np.array([place for place, (_, pair) in enumerate(rows) if pair])
    keys = pd.MultiIndex.from_tuples([(network, *pair) for network, pair in rows if pair])
    with figure_style():
        figure = Figure(figsize=(PAGE_INCHES, ABOVE + BELOW + 0.17 * len(rows)))
        panels = np.atleast_1d(figure.subplots(1, len(metrics), sharey=True))
        for axes, metric in zip(panels, metrics, strict=True):
            of_metric = rows_of(table, metric=metric).set_index(["network", *Pair._fields]).reindex(keys)
            for up, name, low, high, color, marker in (
                (0.18, "gain", "gain_low", "gain_high", BLACK, "o"),
                (-0.18, *RATIO, ORANGE, "D"),
            ):
                ys = places - up
                intervals(axes, of_metric[low], of_metric[high], ys, color)
                axes.plot(of_metric[name], ys, marker, color=color, markersize=3)
            axes.set_title(label(metric))
            axes.tick_params(axis="x", labelsize=SMALL)
            _rows(axes, rows, PANEL_TICKS, label if axes is panels[0] else lambda _: "")
        panels[0].tick_params(axis="y", labelsize=SMALL)
        panels[0].plot([], [], "o-", color=BLACK, markersize=3, label="change of the means")
        panels[0].plot([], [], "D-", color=ORANGE, markersize=3, label="change within blocks")
        figure.supxlabel(DIRECTIONS, fontsize=8)
        figure.legend(loc="upper center", ncols=2)
        _place(figure, panels[0])
        return figure


def _place(figure: Figure, first: Axes) -> None:
    """Place the panels of `figure`, the `first` of which has the names of the rows. Matplotlib's constrained layout of
    so many panels is another one from time to time, and a report's files are to be the same each time."""
    width, height = figure.get_size_inches()
    figure.draw_without_rendering()
    extent = first.yaxis.get_tightbbox()
    assert extent is not None, "a panel without labels"
    names = (first.bbox.x0 - extent.x0) / figure.dpi
    figure.subplots_adjust(
        left=names / width + 0.01, right=0.985, bottom=BELOW / height, top=1 - ABOVE / height, wspace=0.08
    )


def draw_confirmatory(table: pd.DataFrame, networks: Sequence[str], metric: str, pairs: Sequence[Pair]) -> Figure:
    """Draw one metric of `table`, which is from `confirmatory`, as wide as a column: a row for each network and pair
    with its change, interval and margin of equivalence, in the colour and marker of its verdict."""
    rows = rows_by_network(networks, pairs)
    index = rows_of(table, metric=metric).set_index(["network", "reference", "compared"]).sort_index()
    with figure_style():
        figure = Figure(figsize=(COLUMN_INCHES, 1.4 + 0.24 * len(rows)), layout="constrained")
        axes = figure.subplots()
        _rows(axes, rows, COLUMN_TICKS, place_label)
        for y, (network, pair) in enumerate(rows):
            if pair is None:
                continue
            row = index.loc[(network, *pair)]
            color, marker = VERDICT_MARKS[row["verdict"]]
            margin = row["margin"]
            axes.fill_between([1 / (1 + margin) - 1, margin], y - 0.42, y + 0.42, color="0.9", linewidth=0)
            if np.isfinite(row["gain"]):
                axes.plot([row["gain_low"], row["gain_high"]], [y, y], color=color, linewidth=1.6)
                axes.plot(row["gain"], y, marker, color=color, markersize=6)
            else:
                middle = axes.get_yaxis_transform()
                axes.text(0.5, y, "no runs to compare", transform=middle, ha="center", va="center", style="italic")
        axes.set_title(title_with_label(metric), fontweight="bold")
        axes.set_xlabel(DIRECTIONS)
        _verdict_legend(axes, table, "")
        figure.legend(loc="outside lower center", ncols=2)
        return figure


def draw_combined(contrasts: pd.DataFrame, gains: pd.DataFrame) -> Figure:
    """Draw the tables of `analysis.combining.Combination`: a panel for each metric, and for each network and pair a row
    of the combined change, in the colour of its verdict, above the rows of its campaigns.

    A combined interval that does not fit ends in an arrow at the edge of its panel: with two campaigns it would leave
    all else invisible.
    """
    key = ["network", "reference", "compared"]
    rows = gains.groupby(key, sort=False)["campaign"].unique()
    starts = np.cumsum([0, *(len(names) + 1 for names in rows)])
    metrics = contrasts["metric"].unique()
    with figure_style():
        figure = Figure(figsize=(PAGE_INCHES, 1.0 + 0.17 * starts[-1]), layout="constrained")
        panels = np.atleast_1d(figure.subplots(1, len(metrics), sharey=True))
        for axes, metric in zip(panels, metrics, strict=True):
            of_metric = rows_of(gains, metric=metric)
            least, most = min(0, of_metric["gain_low"].min()), max(0, of_metric["gain_high"].max())
            limits = least - 0.1 * (most - least), most + 0.1 * (most - least)
            for start, (setting, names) in zip(starts, rows.items(), strict=False):
                for row in rows_of(of_metric, **dict(zip(key, setting, strict=True))).to_dict("records"):
                    y = start + 1 + list(names).index(row["campaign"])
                    axes.plot([row["gain_low"], row["gain_high"]], [y, y], color="0.4", linewidth=1)
                    axes.plot(row["gain"], y, "s", color="0.4", markersize=3)
                for row in rows_of(contrasts, metric=metric, **dict(zip(key, setting, strict=True))).to_dict("records"):
                    color = VERDICT_MARKS[row["verdict"]][0]
                    margin = [1 / (1 + row["margin"]) - 1, row["margin"]]
                    axes.fill_between(margin, start - 0.5, start + len(names) + 0.5, color="0.93", linewidth=0)
                    ends = np.clip([row["gain_low"], row["gain_high"]], *limits)
                    axes.plot(ends, [start, start], color=color, linewidth=2)
                    axes.plot(row["gain"], start, "D", color=color, markersize=5)
                    for end, whole, mark in zip(ends, (row["gain_low"], row["gain_high"]), "<>", strict=True):
                        if end != whole:
                            axes.plot(end, start, mark, color=color, markersize=5, clip_on=False)
            axes.set_xlim(limits)
            axes.set_title(title_with_label(metric) if len(metrics) <= MOST_TITLES else label(metric))
            _change_axis(axes, PANEL_TICKS)
        texts = [
            text
            for (network, reference, compared), names in rows.items()
            for text in (f"{label(network)}   {label(compared)} / {label(reference)}", *names)
        ]
        panels[0].set_yticks(range(len(texts)), texts)
        panels[0].set_ylim(len(texts) - 0.4, -0.6)
        for place, text in enumerate(panels[0].get_yticklabels()):
            text.set(parse_math=False, fontsize=SMALL, fontweight="bold" if place in starts else "normal")
        _verdict_legend(panels[0], contrasts, "combined: ")
        panels[0].plot([], [], "s-", color="0.4", markersize=3, linewidth=1, label="one campaign")
        figure.supxlabel(DIRECTIONS, fontsize=8)
        figure.legend(loc="outside upper center", ncols=4)
        return figure


def _verdict_legend(axes: Axes, table: pd.DataFrame, prefix: str) -> None:
    """Add all verdicts to the legend, so that it explains the colours even where a verdict does not occur."""
    for verdict, (color, marker) in VERDICT_MARKS.items():
        if verdict != EQUAL_ON_AVERAGE or (table["verdict"] == verdict).any():
            axes.plot([], [], marker, color=color, linestyle="", label=prefix + verdict)
    axes.fill_between([], [], color="0.9", label="counts as equivalent")


def _change_axis(axes: Axes, ticks: int) -> None:
    """Mark a change of 0 on `axes`, and set about `ticks` ticks."""
    axes.axvline(0, color="0.4", linewidth=0.7)
    percent_axis(axes.xaxis, ticks)


def _rows(axes: Axes, rows: Sequence[Row], ticks: int, name: Callable[[str], str]) -> None:
    """Label the `rows` of `axes`, mark a change of 0, and set about `ticks` ticks; `name` writes a network's name."""
    labels = [f"{label(pair.compared)} / {label(pair.reference)}" if pair else "" for _, pair in rows]
    if not any(pair is None for _, pair in rows):
        labels = [label(network) for network, _ in rows]
    _change_axis(axes, ticks)
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    # The name of a network stands in a row of its own, within the axes, where there is room.
    for place, (tick, (network, pair)) in enumerate(zip(axes.yaxis.get_major_ticks(), rows, strict=True)):
        if pair is None:
            where = axes.get_yaxis_transform()
            # The white box interrupts the line of no change.
            box = {"facecolor": "white", "edgecolor": "none", "pad": 0.5}
            style: Any = {"fontsize": SMALL, "fontweight": "bold", "in_layout": False, "bbox": box}
            axes.text(0.01, place, name(network), transform=where, va="center", **style)
            tick.tick1line.set_visible(False)
            tick.gridline.set_visible(False)
            if place:
                axes.axhline(place - 0.5, color="0.7", linewidth=0.6)
