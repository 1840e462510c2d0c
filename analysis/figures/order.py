"""Whether the machine was the same from the first run to the last: each run's distance from its setting's median."""

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.figures.style import BLUE, PAGE_INCHES, VERMILION, figure_style
from analysis.text import label

# The line through the runs has at most this many points.
POINTS = 40


def draw(residuals: pd.DataFrame, metric: str, canary: str | None = None) -> Figure:
    """Draw `residuals`, which is from `stability.residuals`. Left: over time, with the median and quartiles of
    stretches of runs, and below it the canary, if one is named. Right: by the place in the block."""
    runs = residuals[residuals[f"off_{metric}"].notna()]
    with figure_style():
        rows = 2 if canary else 1
        figure = Figure(figsize=(PAGE_INCHES, 1.0 + 1.7 * rows), layout="constrained")
        grid = figure.subplots(rows, 2, width_ratios=(3, 1), squeeze=False)
        times, places = grid[0]
        times.plot(runs["hours"], 100 * runs[f"off_{metric}"], ".", color="0.7", markersize=1.5, rasterized=True)
        _stretches(times, runs, 100 * runs[f"off_{metric}"])
        reach = max(5.0, 130 * float(runs[f"off_{metric}"].abs().quantile(0.99))) if len(runs) else 5.0
        times.set(ylim=(-reach, reach), ylabel=f"{label(metric)}: distance from the\nsetting's median [%]")
        times.set_xlabel("hours since the first run")
        groups = [(place, 100 * group) for place, group in runs.groupby("place")[f"off_{metric}"]]
        if groups:
            places.boxplot(
                [group.to_numpy() for _, group in groups],
                positions=[place for place, _ in groups],
                showfliers=False,
                medianprops={"color": VERMILION, "linewidth": 1.5},
            )
        places.axhline(0, color="0.4", linewidth=0.7)
        places.set_xlabel("place in the block")
        if canary:
            below, beside = grid[1]
            with_canary = runs[runs[canary].notna()]
            below.plot(with_canary["hours"], with_canary[canary], ".", color="0.7", markersize=1.5, rasterized=True)
            _stretches(below, with_canary, with_canary[canary])
            below.set(xlabel="hours since the first run", ylabel=canary.replace("_", " "))
            beside.plot(
                with_canary[canary], 100 * with_canary[f"off_{metric}"], ".", color=BLUE, markersize=2, rasterized=True
            )
            beside.set(xlabel=canary.replace("_", " "), ylim=(-reach, reach))
        return figure


def _stretches(axes: "object", runs: pd.DataFrame, values: "pd.Series[float]") -> None:
    if len(runs) < 4:
        return
    stretch = np.minimum(np.arange(len(runs)) * POINTS // len(runs), POINTS - 1)
    groups = values.groupby(stretch)
    hours = runs["hours"].groupby(stretch).mean()
    axes.fill_between(  # type: ignore[attr-defined]
        hours, groups.quantile(0.25), groups.quantile(0.75), color=BLUE, alpha=0.2, linewidth=0
    )
    axes.plot(hours, groups.median(), color=BLUE, linewidth=1.5)  # type: ignore[attr-defined]
