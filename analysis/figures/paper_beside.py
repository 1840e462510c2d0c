"""The paper's numbers and the campaign's, side by side."""

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures.style import BLACK, PAGE_INCHES, SMALL, VERMILION, figure_style, intervals
from analysis.runs import records
from analysis.text import label

PANELS = {
    "mean_gain": "gain of the means",
    "sites_faster": "sites that are faster, of 38",
    "mean_delta": "mean difference",
    "rtt_delta": "one-server sites, less one round trip",
}
# These differences are a few ms on one network and ten thousand on another, so each network has an axis of its own.
IN_MS = ("mean_delta", "rtt_delta")


def panels(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Title of a panel → its rows. There is a panel for each kind of number that the campaign has; differences in ms
    have one for each network."""
    by_title = {}
    for kind, title in PANELS.items():
        rows = table[table["kind"] == kind]
        if kind not in IN_MS:
            by_title[title] = rows
            continue
        for network, of_network in rows.groupby("network", sort=False):
            by_title[f"{title} on {label(str(network))} [ms]"] = of_network
    return {title: rows for title, rows in by_title.items() if rows["ours"].notna().any()}


def draw(table: pd.DataFrame) -> Figure:
    """Draw `table`, which is from `side_by_side`: a panel for each kind of number that the campaign has."""
    by_title = panels(table)
    sizes = [len(rows) + 2.0 for rows in by_title.values()]
    with figure_style():
        figure = Figure(figsize=(PAGE_INCHES, 0.8 + 0.17 * (sum(sizes) or 3)), layout="constrained")
        if not by_title:
            figure.text(0.5, 0.5, "the campaign has none of the paper's numbers", ha="center")
            return figure
        grid = np.atleast_1d(figure.subplots(len(by_title), 1, height_ratios=sizes))
        for axes, (title, rows) in zip(grid, by_title.items(), strict=True):
            _panel(axes, rows, title)
        grid[0].plot([], [], "D", color=BLACK, markerfacecolor="white", markersize=4, label="paper")
        grid[0].plot([], [], "o-", color=VERMILION, markersize=4, label="this campaign, with its interval")
        figure.legend(loc="outside upper center", ncols=2)
        return figure


def _panel(axes: Axes, rows: pd.DataFrame, title: str) -> None:
    ys = np.arange(len(rows))
    axes.plot(rows["value"], ys, "D", color=BLACK, markerfacecolor="white", markersize=4, clip_on=False)
    intervals(axes, rows["ours_low"], rows["ours_high"], ys, VERMILION)
    axes.plot(rows["ours"], ys, "o", color=VERMILION, markersize=4, clip_on=False)
    labels = [_label(row) for row in records(rows)]
    axes.set_yticks(range(len(labels)), labels, fontsize=SMALL)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.set_title(title, loc="left", fontweight="bold")
    kind = rows["kind"].iloc[0]
    if kind == "mean_gain":
        axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.0f} %")
    if kind in IN_MS:
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.6g}".replace("-", "\N{MINUS SIGN}"))
    if kind != "sites_faster":
        axes.axvline(0, color="0.4", linewidth=0.7)


def _label(row: dict[str, Any]) -> str:
    """The name of a number, at the left of its row."""
    pair = f"{label(row['compared'])} / {label(row['reference'])}"
    site = f" {row['site']}" if row["site"] else ""
    absent = "" if np.isfinite(row["ours"]) else "  (not here)"
    network = "" if row["kind"] in IN_MS else f"{label(row['network'])} "
    return f"{network}{pair} {label(row['metric'])}{site}{absent}"
