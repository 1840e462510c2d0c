"""Whether the machine was the same from the first run to the last: each run's distance from its setting's median."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.figures.style import BLACK, ORANGE, PAGE_INCHES, figure_style
from analysis.text import label

# The line through the runs has at most this many points.
POINTS = 40
# A shorter campaign has an axis in minutes.
LEAST_HOURS = 2.0


def draw(residuals: pd.DataFrame, metric: str, canary: str | None = None) -> Figure:
    """Draw `residuals`, which is from `stability.residuals`. Left: over time, with the median and quartiles of
    stretches of runs, and below it the canary, if one is named. Right: by the place in the block."""
    runs = residuals[residuals[f"off_{metric}"].notna()]
    unit, minutes = ("hours", 60) if runs["hours"].max() >= LEAST_HOURS else ("minutes", 1)
    runs, since = runs.assign(since=60 * runs["hours"] / minutes), f"{unit} since the first run"
    with figure_style():
        rows = 2 if canary else 1
        figure = Figure(figsize=(PAGE_INCHES, 1.0 + 1.7 * rows), layout="constrained")
        grid = figure.subplots(rows, 2, width_ratios=(3, 1), squeeze=False)
        times, places = grid[0]
        times.plot(runs["since"], 100 * runs[f"off_{metric}"], ".", color="0.7", markersize=1.5, rasterized=True)
        _stretches(times, runs, 100 * runs[f"off_{metric}"])
        reach = max(5.0, 130 * float(runs[f"off_{metric}"].abs().quantile(0.99))) if len(runs) else 5.0
        times.set(ylim=(-reach, reach), ylabel=f"{label(metric)}: distance from the\nsetting's median [%]")
        times.set_xlabel(since)
        groups = [(place, 100 * group) for place, group in runs.groupby("place")[f"off_{metric}"]]
        if groups:
            places.boxplot(
                [group.to_numpy() for _, group in groups],
                positions=[place for place, _ in groups],
                showfliers=False,
                medianprops={"color": ORANGE, "linewidth": 1.5},
            )
        places.axhline(0, color="0.4", linewidth=0.7)
        places.set_xlabel("place in the block")
        if canary:
            below, beside = grid[1]
            name = canary.removesuffix("_ms").replace("_", " ") + " [ms]"
            with_canary = runs[runs[canary].notna()]
            below.plot(with_canary["since"], with_canary[canary], ".", color="0.7", markersize=1.5, rasterized=True)
            _stretches(below, with_canary, with_canary[canary])
            below.set(xlabel=since, ylabel=name)
            beside.plot(
                with_canary[canary], 100 * with_canary[f"off_{metric}"], ".", color="0.3", markersize=2, rasterized=True
            )
            beside.set(xlabel=name, ylim=(-reach, reach))
        return figure


def _stretches(axes: "object", runs: pd.DataFrame, values: "pd.Series[float]") -> None:
    if len(runs) < 4:
        return
    stretch = np.minimum(np.arange(len(runs)) * POINTS // len(runs), POINTS - 1)
    groups = values.groupby(stretch)
    since = runs["since"].groupby(stretch).mean()
    axes.fill_between(  # type: ignore[attr-defined]
        since, groups.quantile(0.25), groups.quantile(0.75), color=ORANGE, alpha=0.3, linewidth=0
    )
    axes.plot(since, groups.median(), color=BLACK, linewidth=1.5)  # type: ignore[attr-defined]
