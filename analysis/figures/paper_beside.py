"""The paper's numbers and the campaign's, side by side."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures.style import (
    BLACK,
    ORANGE,
    PAGE_INCHES,
    SMALL,
    figure_style,
    in_paper_order,
    intervals,
    percent_axis,
)
from analysis.runs import records
from analysis.text import label

PANELS = {
    "mean_gain": "Change of the means",
    "sites_faster": "Sites that are faster, of 38",
    "mean_delta": "Difference of the means",
    "rtt_delta": "One server, less one round trip,",
}
# These differences are a few ms on one network and ten thousand on another, so each network has an axis of its own.
IN_MS = ("mean_delta", "rtt_delta")
COLUMNS, TICKS = 2, 3


def panels(table: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Title of a panel → its rows, the numbers that the campaign has. There is a panel for each kind of number;
    differences in ms have one for each network. Networks are in the paper's order."""
    networks = in_paper_order(table["network"].unique())
    table = table[table["ours"].notna()]
    table = table.sort_values("network", key=lambda names: names.map(networks.index), kind="stable")
    by_title = {}
    for kind, title in PANELS.items():
        rows = table[table["kind"] == kind]
        if kind not in IN_MS:
            by_title[title] = rows
            continue
        for network, of_network in rows.groupby("network", sort=False):
            by_title[f"{title} on {label(str(network))} [ms]"] = of_network
    return {title: rows for title, rows in by_title.items() if len(rows)}


def columns_of(by_title: Mapping[str, pd.DataFrame]) -> list[dict[str, pd.DataFrame]]:
    """The panels in columns of about the same height, in their order."""
    half = sum(map(_rows_high, by_title.values())) / COLUMNS
    columns: list[dict[str, pd.DataFrame]] = [{}]
    height = 0.0
    for title, rows in by_title.items():
        if height >= half * len(columns) and len(columns) < COLUMNS:
            columns.append({})
        columns[-1][title] = rows
        height += _rows_high(rows)
    return columns


def draw(table: pd.DataFrame) -> Figure:
    """Draw `table`, which is from `side_by_side`: a panel for each kind of number that the campaign has."""
    columns = columns_of(panels(table))
    highest = max(sum(map(_rows_high, column.values())) for column in columns)
    with figure_style():
        figure = Figure(figsize=(PAGE_INCHES, 0.5 + 0.17 * highest), layout="constrained")
        parts = figure.subfigures(1, len(columns), squeeze=False)[0]
        for part, column in zip(parts, columns, strict=True):
            heights = [_rows_high(rows) for rows in column.values()]
            if (rest := highest - sum(heights)) > 0:
                heights.append(rest)
            grid = np.atleast_1d(part.subplots(len(heights), 1, height_ratios=heights))
            for axes in grid[len(column) :]:
                axes.set_axis_off()
            for axes, (title, rows) in zip(grid, column.items(), strict=False):
                _panel(axes, rows, title)
        first = figure.axes[0]
        first.plot([], [], "D", color=BLACK, markerfacecolor="white", markersize=4, label="paper")
        first.plot([], [], "o-", color=ORANGE, markersize=4, label="this campaign, with its interval")
        figure.legend(*first.get_legend_handles_labels(), loc="outside upper center", ncols=2)
        return figure


def _rows_high(rows: pd.DataFrame) -> float:
    """The height of a panel, in rows."""
    return len(rows) + 3.0


def _panel(axes: Axes, rows: pd.DataFrame, title: str) -> None:
    ys = np.arange(len(rows))
    intervals(axes, rows["ours_low"], rows["ours_high"], ys, ORANGE)
    axes.plot(rows["ours"], ys, "o", color=ORANGE, markersize=4, clip_on=False)
    axes.plot(rows["value"], ys, "D", color=BLACK, markerfacecolor="white", markersize=4, clip_on=False)
    labels = [_label(row) for row in records(rows)]
    axes.set_yticks(range(len(labels)), labels, fontsize=SMALL)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    # Above the labels of the rows there is room for the title.
    axes.set_title(title, loc="right", fontweight="bold")
    axes.locator_params(axis="x", nbins=TICKS)
    axes.tick_params(axis="x", labelsize=SMALL)
    kind = rows["kind"].iloc[0]
    if kind == "mean_gain":
        percent_axis(axes.xaxis, TICKS)
    if kind in IN_MS:
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.6g}".replace("-", "\N{MINUS SIGN}"))
    if kind != "sites_faster":
        axes.axvline(0, color="0.4", linewidth=0.7)


def _label(row: dict[str, Any]) -> str:
    """The name of a number, at the left of its row."""
    pair = f"{label(row['compared'])} / {label(row['reference'])}"
    site = f" {row['site']}" if row["site"] else ""
    network = "" if row["kind"] in IN_MS else f"{label(row['network'])} "
    return f"{network}{pair} {label(row['metric'])}{site}"
