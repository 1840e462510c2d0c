"""Contributions as a waterfall: from the lowest rung's time, rung by rung, to the highest rung's."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.markers import CARETLEFT, CARETRIGHT
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from analysis.figures.style import BLUE, PAGE_INCHES, SMALL, VERMILION, figure_style
from analysis.runs import rows_of
from analysis.text import label, percent, signed_ms
from studies.ladder.contributions import CHANGE, PART, RUNG, SLOW_PAGE, WHOLE

ROW_INCHES = 0.185
# The size of the points for single sites next to a bar, and of the arrows of intervals that extend beyond the panel.
SITE_MARK = 2.2
ARROW_MARK = 3.5
# The style of bars with too few blocks for an interval.
OUTLINE: dict[str, Any] = {"facecolor": "white", "edgecolor": "0.4", "linewidth": 0.6}
TICKS = 5


def draw(table: pd.DataFrame, sites: pd.DataFrame, networks: Sequence[str], metrics: Sequence[str]) -> Figure:
    """Draw a row of panels for each network, with a panel for each metric.

    Each rung has a bar, which begins at the end of the bar above it. Its length is the rung's contribution in percent
    of the lowest rung's time. The contribution's interval is drawn on the bar; if there are too few blocks for an
    interval, the bar is only an outline. Points below the bar are single sites, and the numbers are on the right.
    `table` and `sites` have the columns of `contributions` and `site_contributions`.
    """
    parts = {network: drawn_rows(rows_of(table, network=network, metric=metrics[0])) for network in networks}
    heights = [len(rows) + 3 for rows in parts.values()]
    with figure_style():
        figure = Figure(figsize=(PAGE_INCHES, 0.5 + ROW_INCHES * sum(heights)))
        figure.set_layout_engine("constrained", w_pad=0.1)
        panels = figure.subplots(
            len(networks), len(metrics), squeeze=False, sharex=False, sharey="row", height_ratios=heights
        )
        for row_of_panels, network in zip(panels, networks, strict=True):
            for axes, metric in zip(row_of_panels, metrics, strict=True):
                here = rows_of(table, network=network, metric=metric)
                _panel(axes, drawn_rows(here), rows_of(sites, network=network, metric=metric))
                axes.set_title(f"{label(metric)} on {label(network)}", fontweight="bold")
            _names(row_of_panels[0], parts[network])
        for axes in panels[-1]:
            axes.set_xlabel(f"change of {label(table['below'].iloc[0])}'s time [%]", fontsize=SMALL)
        keys = [
            Patch(facecolor=BLUE, label="faster"),
            Patch(facecolor=VERMILION, label="slower"),
            Patch(facecolor="0.75", label="not shown to differ from 0"),
            Patch(facecolor="0.35", label="measured directly"),
        ]
        if drawn_rows(table[table["metric"].isin(metrics)])["points_low"].isna().any():
            keys.append(Patch(**OUTLINE, label="too few blocks for an interval"))
        figure.legend(handles=keys, loc="outside lower center", ncols=4, fontsize=SMALL)
        return figure


def drawn_rows(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of one network and metric that have a bar, from top to bottom.

    The effect of a slower browser on a page has none, since it would lie far beyond the others.
    """
    return rows[rows["name"] != SLOW_PAGE]


def _panel(axes: Axes, rows: pd.DataFrame, sites: pd.DataFrame) -> None:
    end = 0.0
    bounds = _bounds(rows, sites)
    for y, row in enumerate(rows.to_dict("records")):
        # A change is not a step of the ladder, so it begins at 0.
        begin = _begin(row)
        height = 0.4 if row["kind"] == PART else 0.62
        has_interval = np.isfinite(row["points_low"])
        style: dict[str, Any] = {"color": _color(row), "linewidth": 0} if has_interval else OUTLINE
        axes.barh(y, row["points"], height, left=begin, **style)
        if has_interval:
            _interval(axes, begin + row["points_low"], begin + row["points_high"], y, bounds)
        key = {name: row[name] for name in ("kind", "name")}
        of_sites = begin + rows_of(sites, **key)["points"].to_numpy()
        axes.plot(of_sites, np.full(len(of_sites), y + 0.36), ".", color="0.45", markersize=SITE_MARK, linestyle="")
        if row["kind"] == RUNG:
            if y:
                axes.plot([begin, begin], [y - 0.9, y + 0.31], color="0.6", linewidth=0.6)
            end = begin + row["points"]
        if row["kind"] == WHOLE:
            # A dotted line from the end of the rungs, next to the direct comparison.
            axes.plot([end, end], [y - 0.9, y + 0.42], color="black", linewidth=0.8, linestyle=":")
        numbers = f"{percent(row['points'])}  {signed_ms(row['ms'])} ms".replace("-", "\N{MINUS SIGN}")
        axes.text(1.02, y, numbers, transform=axes.get_yaxis_transform(), va="center", fontsize=SMALL)
    axes.axvline(0, color="0.4", linewidth=0.7)
    axes.xaxis.set_major_formatter(lambda value, _: f"{100 * value:.3g}".replace("-", "\N{MINUS SIGN}"))
    axes.xaxis.set_major_locator(MaxNLocator(TICKS))
    axes.tick_params(axis="x", labelsize=SMALL)
    axes.grid(axis="y", visible=False)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    # Without this, bars would end at the panel's edge.
    axes.use_sticky_edges = False
    axes.margins(x=0.08)


def _begin(row: Mapping[str, Any]) -> float:
    """Where a bar begins, as a share of the lowest rung's time."""
    return 0.0 if row["kind"] in (WHOLE, CHANGE) else float(row["start"]) - 1


def _bounds(rows: pd.DataFrame, sites: pd.DataFrame) -> tuple[float, float]:
    """The range in which the panel shows intervals: that of its bars and points, extended by its own length on either
    side. Without this limit, the wide intervals of few blocks would make the bars invisible."""
    ends = [0.0]
    for row in rows.to_dict("records"):
        begin = _begin({str(key): value for key, value in row.items()})
        of_sites = rows_of(sites, kind=row["kind"], name=row["name"])["points"]
        ends += [begin, begin + row["points"], *(begin + of_sites.dropna())]
    extent = max(ends) - min(ends)
    return min(ends) - extent, max(ends) + extent


def _interval(axes: Axes, low: float, high: float, y: float, bounds: tuple[float, float]) -> None:
    """Draw a line from `low` to `high`, with an arrow at each end that lies beyond `bounds`."""
    least, most = float(np.clip(low, *bounds)), float(np.clip(high, *bounds))
    axes.plot([least, most], [y, y], color="black", linewidth=0.8)
    if low < least:
        axes.plot(least, y, marker=CARETLEFT, color="black", markersize=ARROW_MARK)
    if high > most:
        axes.plot(most, y, marker=CARETRIGHT, color="black", markersize=ARROW_MARK)


def _color(row: dict[str, object]) -> str:
    if row["kind"] == WHOLE:
        return "0.35"
    if not row["is_shown"]:
        return "0.75"
    return BLUE if float(str(row["points"])) < 0 else VERMILION


def _names(axes: Axes, rows: pd.DataFrame) -> None:
    axes.set_yticks(range(len(rows)), [bar_name(row) for row in rows.to_dict("records")], fontsize=SMALL)


def bar_name(row: Mapping[Any, Any]) -> str:
    """The name of a bar: the change, or how many there are if rungs between are missing, since a bar has one line."""
    changes = str(row["name"]).count(" + ") + 1
    return str(row["name"]) if changes == 1 else f"{changes} changes, to {label(row['above'])}"
