"""The paper's Figure 3: the distribution over sites of the gain against stock TCP, by network and metric."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.figures.style import PAGE_INCHES, figure_style, line_style
from analysis.text import label

METRICS = ("fvc", "si", "vc85", "plt")
# The axis ends here at the latest, at twice the time.
WIDEST = 1.0


def series(gain_table: pd.DataFrame, reference: str) -> dict[tuple[str, str, str], np.ndarray]:
    """The lines: (network, metric, protocol) → its gains, sorted; `gain_table` is from `analysis.gain.gains`."""
    against = gain_table[gain_table["reference"] == reference].dropna(subset="gain")
    groups = against.groupby(["network", "metric", "compared"], sort=False)["gain"]
    return {key: np.sort(values.to_numpy()) for key, values in groups if key[1] in METRICS}


def draw(gain_table: pd.DataFrame, networks: Sequence[str], protocols: Sequence[str], reference: str) -> Figure:
    """A grid of networks and metrics with one line for each protocol compared with `reference`."""
    lines = series(gain_table, reference)
    rows = [network for network in networks if any(key[0] == network for key in lines)]
    compared = [name for name in protocols if any(key[2] == name for key in lines)]
    with figure_style():
        figure = Figure(figsize=(PAGE_INCHES, 0.6 + 1.35 * max(1, len(rows))), layout="constrained")
        grid = figure.subplots(max(1, len(rows)), len(METRICS), squeeze=False, sharex="row", sharey=True)
        for row, network in zip(grid, rows, strict=False):
            values = np.concatenate([line for key, line in lines.items() if key[0] == network])
            reach = float(np.clip(np.abs(values).max() * 1.08, 0.05, WIDEST))
            row[0].set_xlim(-reach, reach)
            row[0].set_ylabel(f"{label(network)}\nshare of sites")
            for axes, metric in zip(row, METRICS, strict=True):
                axes.axvline(0, color="0.4", linewidth=0.7)
                beyond = 0
                for protocol in compared:
                    line = lines.get((network, metric, protocol), np.empty(0))
                    beyond += int((np.abs(line) > reach).sum())
                    if len(line):
                        style = line_style(protocol, protocols)
                        share = np.arange(len(line) + 1) / len(line)
                        xs = np.concatenate([[line[0]], line])
                        axes.step(xs, share, where="post", color=style.color, linestyle=style.dashes)
                if beyond:
                    axes.text(0.98, 0.03, f"{beyond} beyond", transform=axes.transAxes, ha="right", fontsize=6)
        for axes, metric in zip(grid[0], METRICS, strict=True):
            axes.set_title(label(metric))
            axes.set_ylim(0, 1.02)
        for axes in grid[-1]:
            axes.set_xlabel(f"gain against {label(reference)}")
        for name in compared:
            style = line_style(name, protocols)
            grid[0, 0].plot([], [], color=style.color, linestyle=style.dashes, label=label(name))
        if compared:
            figure.legend(loc="outside upper center", ncols=len(compared))
        return figure
