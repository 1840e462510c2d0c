"""Each pair's mean gain over sites with its intervals, by network and metric."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.figures.style import BLUE, PAGE_INCHES, VERMILION, figure_style
from analysis.hypotheses import Pair
from analysis.outcomes import EQUIVALENT, FASTER, NOT_DECIDED, SLOWER
from analysis.text import label

VERDICT_MARKS = {FASTER: (BLUE, "<"), SLOWER: (VERMILION, ">"), EQUIVALENT: ("0.2", "s"), NOT_DECIDED: ("0.5", "o")}


def draw(table: pd.DataFrame, networks: Sequence[str], metrics: Sequence[str], pairs: Sequence[Pair]) -> Figure:
    """`table` has the columns of `over_sites` and `mixed_models`. A panel for each metric, a row for each
    network and pair: the mean gain with the two-level bootstrap's interval, and below it the mixed model's."""
    rows = [(network, pair) for network in networks for pair in pairs]
    with figure_style():
        figure = Figure(figsize=(PAGE_INCHES, 0.9 + 0.19 * len(rows)), layout="constrained")
        panels = np.atleast_1d(figure.subplots(1, len(metrics), sharey=True))
        index = table.set_index(["network", "reference", "compared", "metric"]).sort_index()
        for axes, metric in zip(panels, metrics, strict=True):
            axes.axvline(0, color="0.4", linewidth=0.7)
            for y, (network, pair) in enumerate(rows):
                key = (network, *pair, metric)
                if key not in index.index:
                    continue
                row = index.loc[key]
                for up, name, low, high, color, marker in (
                    (0.15, "gain", "gain_low", "gain_high", BLUE, "o"),
                    (-0.2, "mixed_gain", "mixed_low", "mixed_high", VERMILION, "D"),
                ):
                    axes.plot([row[low], row[high]], [y - up] * 2, color=color, linewidth=1)
                    axes.plot(row[name], y - up, marker, color=color, markersize=3)
            axes.set_title(label(metric))
            axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
            axes.tick_params(axis="x", labelsize=6.5)
            for place in range(1, len(networks)):
                axes.axhline(place * len(pairs) - 0.5, color="0.7", linewidth=0.6)
        labels = [
            f"{label(network) + '   ' if not y % len(pairs) else ''}{label(pair.compared)} / {label(pair.reference)}"
            for y, (network, pair) in enumerate(rows)
        ]
        panels[0].set_yticks(range(len(rows)), labels, fontsize=6.5)
        panels[0].set_ylim(len(rows) - 0.4, -0.6)
        panels[0].plot([], [], "o-", color=BLUE, markersize=3, label="mean gain, two-level bootstrap")
        panels[0].plot([], [], "D-", color=VERMILION, markersize=3, label="ratio within blocks, mixed model")
        figure.legend(loc="outside upper center", ncols=2)
        return figure


def draw_confirmatory(
    table: pd.DataFrame, networks: Sequence[str], metrics: Sequence[str], pairs: Sequence[Pair]
) -> Figure:
    """`table` is from `confirmatory`. A panel for each metric, a row for each network and pair: its gain, interval and
    margin of equivalence, in the colour and marker of its verdict."""
    rows = [(network, pair) for network in networks for pair in pairs]
    index = table.set_index(["network", "reference", "compared", "metric"]).sort_index()
    with figure_style():
        figure = Figure(figsize=(PAGE_INCHES, 0.9 + 0.26 * len(rows)), layout="constrained")
        panels = np.atleast_1d(figure.subplots(1, len(metrics), sharey=True))
        for axes, metric in zip(panels, metrics, strict=True):
            axes.axvline(0, color="0.4", linewidth=0.7)
            for y, (network, pair) in enumerate(rows):
                row = index.loc[(network, *pair, metric)]
                color, marker = VERDICT_MARKS[row["verdict"]]
                margin = row["margin"]
                axes.fill_between([1 / (1 + margin) - 1, margin], y - 0.38, y + 0.38, color="0.9", linewidth=0)
                axes.plot([row["gain_low"], row["gain_high"]], [y, y], color=color, linewidth=1.4)
                axes.plot(row["gain"], y, marker, color=color, markersize=5)
            axes.set_title(label(metric))
            axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g} %")
            for place in range(1, len(networks)):
                axes.axhline(place * len(pairs) - 0.5, color="0.7", linewidth=0.6)
        labels = [
            f"{label(network) + '   ' if not y % len(pairs) else ''}{label(pair.compared)} / {label(pair.reference)}"
            for y, (network, pair) in enumerate(rows)
        ]
        panels[0].set_yticks(range(len(rows)), labels)
        panels[0].set_ylim(len(rows) - 0.4, -0.6)
        for verdict, (color, marker) in VERDICT_MARKS.items():
            panels[0].plot([], [], marker, color=color, linestyle="", label=verdict)
        panels[0].fill_between([], [], color="0.9", label="equivalent within")
        figure.legend(loc="outside upper center", ncols=5)
        return figure
