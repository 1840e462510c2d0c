"""Figures of a user study; each draws the tables that it gets, and reads nothing else."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures.style import BLACK, COLUMN_INCHES, PAGE_INCHES, SMALL, figure_style, line_style, plain_log_axis
from analysis.text import label, label_with_unit
from analysis.user_study.settings import HIGHEST, LOWEST

SAME_COLOUR = "0.82"


def draw_shares(shares: pd.DataFrame, protocols: Sequence[str]) -> Figure:
    """A bar for each network and pair: on the left the votes that say the reference loads faster, on the right those
    that say the compared one does, and between them those that see no difference. The whiskers are the intervals of
    the left and of the right share."""
    rows = shares.to_dict("records")
    with figure_style():
        figure = Figure(figsize=(PAGE_INCHES, 0.9 + 0.36 * len(rows)), layout="constrained")
        axes = figure.subplots()
        for y, row in enumerate(rows):
            first, last = 100 * row["reference_share"], 100 * row["compared_share"]
            parts = (
                (0, first, str(row["reference"])),
                (first, 100 - first - last, ""),
                (100 - last, last, str(row["compared"])),
            )
            for begin, width, protocol in parts:
                colour = line_style(protocol, protocols).color if protocol else SAME_COLOUR
                axes.barh(y, width, left=begin, height=0.62, color=colour, alpha=0.75, linewidth=0)
            ends = (
                (100 * row["reference_low"], 100 * row["reference_high"]),
                (100 - 100 * row["compared_high"], 100 - 100 * row["compared_low"]),
            )
            for shift, (low, high) in zip((-0.12, 0.12), ends, strict=True):
                axes.plot([low, high], [y + shift] * 2, color=BLACK, linewidth=1.1, solid_capstyle="butt")
        names = [
            ": ".join((label(row["network"]), f"{label(row['reference'])} | {label(row['compared'])} ({row['votes']})"))
            for row in rows
        ]
        axes.set_yticks(range(len(rows)), names, fontsize=SMALL)
        axes.set(xlim=(0, 100), ylim=(len(rows) - 0.5, -0.5))
        axes.set_xlabel("votes [%]: the first one loads faster | no difference | the second one")
        axes.grid(visible=False, axis="y")
        return figure


def draw_scores(scores: pd.DataFrame, words: Sequence[str]) -> Figure:
    """The mean opinion score of each protocol on each network, with its interval."""
    networks, protocols = (list(dict.fromkeys(scores[name])) for name in ("network", "protocol"))
    with figure_style():
        figure = Figure(figsize=(max(COLUMN_INCHES, 0.9 + 1.1 * len(networks)), 2.8), layout="constrained")
        axes = figure.subplots()
        for place, protocol in enumerate(protocols):
            style = line_style(protocol, protocols)
            of_one = scores[scores["protocol"] == protocol]
            shift = (place - (len(protocols) - 1) / 2) * 0.7 / len(protocols)
            xs = [networks.index(name) + shift for name in of_one["network"]]
            reach = np.nan_to_num(np.array([of_one["score"] - of_one["low"], of_one["high"] - of_one["score"]]))
            axes.errorbar(
                xs,
                of_one["score"],
                yerr=reach,
                fmt=style.marker,
                color=style.color,
                markersize=4,
                capsize=2,
                label=label(protocol),
            )
        axes.set_xticks(range(len(networks)), [label(name) for name in networks])
        axes.set_yticks(range(LOWEST, HIGHEST + 1, 10), words, fontsize=SMALL)
        axes.set(xlim=(-0.6, len(networks) - 0.4), ylim=(LOWEST, HIGHEST), ylabel="mean opinion score")
        figure.legend(loc="outside upper center", ncols=len(protocols))
        return figure


def draw_against_metrics(scores: pd.DataFrame, preferences: pd.DataFrame, metrics: Sequence[str]) -> Figure:
    """Scatter plots against each of `metrics`, with a point for each clip. The upper ones show the mean rating of each
    film against its metric. The lower ones show the preference in each pair of films against the difference of their
    metrics in percent. Colours stand for networks."""
    kinds = [kind for kind, table in (("score", scores), ("preference", preferences)) if len(table)]
    networks = list(dict.fromkeys([*scores.get("network", ()), *preferences.get("network", ())]))
    with figure_style():
        size = (PAGE_INCHES, 0.5 + 2.4 * len(kinds))
        figure = Figure(figsize=size, layout="constrained")
        panels = figure.subplots(len(kinds), len(metrics), squeeze=False)
        for row, kind in zip(panels, kinds, strict=True):
            for axes, metric in zip(row, metrics, strict=True):
                for place, network in enumerate(networks):
                    table = scores if kind == "score" else preferences
                    of_one = table[table["network"] == network]
                    x = of_one[metric] if kind == "score" else 100 * np.expm1(of_one[metric])
                    y = of_one["score"] if kind == "score" else 100 * of_one["preference"]
                    axes.scatter(
                        x, y, s=14, color=f"C{place}", marker="osD^vPX*"[place % 8], label=label(network), alpha=0.8
                    )
                _axes_of(axes, kind, metric)
        handles, labels = panels[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=len(labels) or 1)
        return figure


def _axes_of(axes: Axes, kind: str, metric: str) -> None:
    if kind == "score":
        axes.set_xscale("log")
        plain_log_axis(axes.xaxis)
        axes.tick_params(axis="x", which="both", labelsize=SMALL, pad=3)
        axes.set(xlabel=label_with_unit(metric), ylabel="mean rating", ylim=(LOWEST, HIGHEST))
    else:
        axes.axhline(0, color="0.4", linewidth=0.7)
        axes.axvline(0, color="0.4", linewidth=0.7)
        axes.set(xlabel=f"{label(metric)}, second film against first [%]", ylabel="preference for the second [points]")
        axes.set_ylim(-105, 105)
