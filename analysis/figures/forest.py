"""The gain of each pair over all sites with its intervals, by network and metric; also of several campaigns."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from analysis.figures.style import BLUE, COLUMN_INCHES, PAGE_INCHES, SMALL, VERMILION, figure_style, intervals
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
        keys = pd.MultiIndex.from_tuples([(network, *pair) for network, pair in rows])
        for axes, metric in zip(panels, metrics, strict=True):
            of_metric = rows_of(table, metric=metric).set_index(["network", *Pair._fields]).reindex(keys)
            for up, name, low, high, color, marker in (
                (0.15, "gain", "gain_low", "gain_high", BLUE, "o"),
                (-0.2, *RATIO, VERMILION, "D"),
            ):
                ys = np.arange(len(rows)) - up
                intervals(axes, of_metric[low], of_metric[high], ys, color)
                axes.plot(of_metric[name], ys, marker, color=color, markersize=3)
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


def draw_combined(contrasts: pd.DataFrame, gains: pd.DataFrame) -> Figure:
    """Draw the tables of `analysis.combining.Combination`: a panel for each metric, and for each network and pair a row
    of the combined gain, in the colour of its verdict, above the rows of its campaigns.

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
            axes.set_title(label(metric))
            _gain_axis(axes, PANEL_TICKS)
        texts = [
            text
            for (network, reference, compared), names in rows.items()
            for text in (f"{label(network)}   {label(compared)} / {label(reference)}", *names)
        ]
        panels[0].set_yticks(range(len(texts)), texts)
        panels[0].set_ylim(len(texts) - 0.4, -0.6)
        for place, text in enumerate(panels[0].get_yticklabels()):
            text.set(parse_math=False, fontsize=SMALL, fontweight="bold" if place in starts else "normal")
        for verdict, (color, _) in VERDICT_MARKS.items():
            if (contrasts["verdict"] == verdict).any():
                panels[0].plot([], [], "D-", color=color, markersize=5, label=f"combined: {verdict}")
        panels[0].plot([], [], "s-", color="0.4", markersize=3, linewidth=1, label="one campaign")
        panels[0].fill_between([], [], color="0.93", label="counts as equivalent")
        figure.supxlabel("\N{LEFTWARDS ARROW} faster      gain      slower \N{RIGHTWARDS ARROW}", fontsize=8)
        figure.legend(loc="outside upper center", ncols=4)
        return figure


def _gain_axis(axes: Axes, ticks: int) -> None:
    """Mark a gain of 0 on `axes`, and set about `ticks` ticks."""
    axes.axvline(0, color="0.4", linewidth=0.7)
    axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g} %".replace("-", "\N{MINUS SIGN}"))
    axes.xaxis.set_major_locator(MaxNLocator(ticks))


def _rows(axes: Axes, networks: Sequence[str], pairs: Sequence[Pair], ticks: int) -> None:
    """Label the rows of `axes`, each a network and a pair, mark a gain of 0, and set about `ticks` ticks."""
    labels = [
        f"{label(network) + '   ' if not place else ''}{label(pair.compared)} / {label(pair.reference)}"
        for network in networks
        for place, pair in enumerate(pairs)
    ]
    _gain_axis(axes, ticks)
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    for place in range(1, len(networks)):
        axes.axhline(place * len(pairs) - 0.5, color="0.7", linewidth=0.6)
