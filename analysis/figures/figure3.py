"""The paper's Figure 3: the distribution over sites of the change against stock TCP, by network and metric."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import Normal, Stroke

from analysis.figures.style import PAGE_INCHES, SMALL, figure_style, in_paper_order, line_style, percent_axis
from analysis.text import label

METRICS = ("fvc", "si", "vc85", "plt")
# An axis leaves out gains that lie beyond the quartiles of its row by more than FAR_OUT times the distance between the
# quartiles ("far out" in Tukey 1977, Exploratory Data Analysis). It ends at WIDEST at the latest: the paper's plots are
# cropped before twice the time.
FAR_OUT = 3
WIDEST = 1.0
# The least range that an axis shows on both sides of 0; and the margin beyond the last gain, as a share of the axis.
LEAST, MARGIN = 0.02, 0.04
# How many ticks with their percentages fit on an axis.
TICKS = 3


def series(gain_table: pd.DataFrame, reference: str) -> dict[tuple[str, str, str], np.ndarray]:
    """The lines of the figure: (network, metric, protocol) → its gains, sorted; `gain_table` is from
    `analysis.statistics.gain.gains`."""
    against = gain_table[gain_table["reference"] == reference].dropna(subset="gain")
    groups = against.groupby(["network", "metric", "compared"], sort=False)["gain"]
    return {key: np.sort(values.to_numpy()) for key, values in groups if key[1] in METRICS}


def limits(gains: np.ndarray) -> tuple[float, float]:
    """Where the axis of a row with these `gains` begins and ends: on each side at the last gain that is not far out.

    The axis does not end at a percentile, such as the 99th. A site has one gain for each metric and protocol, so one
    unusual site may have more gains than the percentile leaves out, and the axis would still extend to them.
    """
    first, third = np.quantile(gains, (0.25, 0.75))
    reach = FAR_OUT * (third - first)
    near = gains[(gains >= first - reach) & (gains <= third + reach)]
    low, high = min(float(near.min()), -LEAST), max(float(near.max()), LEAST)
    margin = MARGIN * (min(high, WIDEST) - low)
    return low - margin, min(high + margin, WIDEST)


def draw(gain_table: pd.DataFrame, networks: Sequence[str], protocols: Sequence[str], reference: str) -> Figure:
    """A grid of networks and metrics, with one line for each protocol compared with `reference`."""
    lines = series(gain_table, reference)
    rows = [network for network in in_paper_order(networks) if any(key[0] == network for key in lines)]
    compared = [name for name in protocols if any(key[2] == name for key in lines)]
    with figure_style():
        figure = Figure(figsize=(PAGE_INCHES, 0.6 + 1.35 * max(1, len(rows))), layout="constrained")
        grid = figure.subplots(max(1, len(rows)), len(METRICS), squeeze=False, sharex="row", sharey=True)
        for row, network in zip(grid, rows, strict=False):
            low, high = limits(np.concatenate([line for key, line in lines.items() if key[0] == network]))
            row[0].set_xlim(low, high)
            row[0].set_ylabel(f"{label(network)}\nsites [%]")
            for axes, metric in zip(row, METRICS, strict=True):
                axes.axvline(0, color="0.4", linewidth=0.7)
                percent_axis(axes.xaxis, TICKS)
                of_panel = {name: lines.get((network, metric, name), np.empty(0)) for name in compared}
                for protocol, line in of_panel.items():
                    if len(line):
                        _step(axes, line, (low, high), protocol, protocols)
                _beyond(axes, np.concatenate([*of_panel.values()]))
        for axes, metric in zip(grid[0], METRICS, strict=True):
            axes.set_title(label(metric))
            axes.set_ylim(0, 1.02)
            axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "25", "50", "75", "100"])
        figure.supxlabel(f"change against {label(reference)}; left of the line is faster", fontsize=8)
        for name in compared:
            style = line_style(name, protocols)
            grid[0, 0].plot([], [], color=style.color, linestyle=style.dashes, label=label(name))
        if compared:
            figure.legend(loc="outside upper center", ncols=len(compared))
        return figure


def _step(axes: Axes, gains: np.ndarray, ends: tuple[float, float], protocol: str, protocols: Sequence[str]) -> None:
    """Draw the distribution of `gains`, from 0 at the low end of the axis to 1 at the high end."""
    style = line_style(protocol, protocols)
    xs = np.concatenate([[min(ends[0], gains[0])], gains, [max(ends[1], gains[-1])]])
    share = np.append(np.arange(len(gains) + 1) / len(gains), 1)
    is_solid = style.dashes == "-"
    # A dashed line is narrower and has white edges, so that it stays visible on a solid line of nearly the same course.
    width = 2.0 if is_solid else 1.2
    edges = [] if is_solid else [Stroke(linewidth=2.4, foreground="white"), Normal()]
    axes.step(
        xs, share, where="post", color=style.color, linestyle=style.dashes, linewidth=width,
        path_effects=edges, zorder=2 if is_solid else 3,
    )  # fmt: skip


def _beyond(axes: Axes, gains: np.ndarray) -> None:
    """Write how many `gains` the axis does not show, in corners where no line of the gains can be."""
    low, high = axes.get_xlim()
    for is_beyond, x, y, side in ((gains < low, 0.02, 0.9, "left"), (gains > high, 0.98, 0.04, "right")):
        if is_beyond.any():
            axes.text(x, y, f"{is_beyond.sum()} beyond", transform=axes.transAxes, ha=side, fontsize=SMALL)
