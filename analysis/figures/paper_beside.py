"""The paper's numbers and the campaign's, side by side."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures.style import BLACK, PAGE_INCHES, VERMILION, figure_style
from analysis.text import label

PANELS = {
    "mean_gain": "mean gain",
    "sites_faster": "sites that are faster, of 38",
    "mean_delta": "mean difference [ms]",
    "rtt_delta": "one-server sites, less one round trip [ms]",
}
# Differences of a few and of ten thousand ms share an axis: linear up to this, logarithmic beyond.
LINEAR_MS = 10


def draw(table: pd.DataFrame) -> Figure:
    """`table` is from `side_by_side`: a panel for each kind of number that the campaign has any of."""
    kinds = [kind for kind in PANELS if table.loc[table["kind"] == kind, "ours"].notna().any()]
    sizes = [len(table[table["kind"] == kind]) + 2.0 for kind in kinds]
    with figure_style():
        figure = Figure(figsize=(PAGE_INCHES, 0.8 + 0.17 * (sum(sizes) or 3)), layout="constrained")
        if not kinds:
            figure.text(0.5, 0.5, "the campaign has none of the paper's numbers", ha="center")
            return figure
        panels = np.atleast_1d(figure.subplots(len(kinds), 1, height_ratios=sizes))
        for axes, kind in zip(panels, kinds, strict=True):
            _panel(axes, table[table["kind"] == kind], kind)
        panels[0].plot([], [], "D", color=BLACK, markerfacecolor="white", markersize=4, label="paper")
        panels[0].plot([], [], "o-", color=VERMILION, markersize=4, label="this campaign, with its interval")
        figure.legend(loc="outside upper center", ncols=2)
        return figure


def _panel(axes: Axes, rows: pd.DataFrame, kind: str) -> None:
    labels = []
    for y, row in enumerate(rows.to_dict("records")):
        axes.plot(row["value"], y, "D", color=BLACK, markerfacecolor="white", markersize=4)
        if np.isfinite(row["ours"]):
            axes.plot([row["ours_low"], row["ours_high"]], [y, y], color=VERMILION, linewidth=1)
            axes.plot(row["ours"], y, "o", color=VERMILION, markersize=4)
        site = f" {row['site']}" if row["site"] else ""
        pair = f"{label(row['compared'])} / {label(row['reference'])}"
        absent = "" if np.isfinite(row["ours"]) else "  (not here)"
        labels.append(f"{label(row['network'])} {pair} {label(row['metric'])}{site}{absent}")
    axes.set_yticks(range(len(labels)), labels, fontsize=6)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.set_title(PANELS[kind], loc="left", fontweight="bold")
    if kind in ("mean_delta", "rtt_delta"):
        axes.set_xscale("symlog", linthresh=LINEAR_MS)
    if kind == "mean_gain":
        axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    if kind != "sites_faster":
        axes.axvline(0, color="0.4", linewidth=0.7)
