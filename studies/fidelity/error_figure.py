"""Errors of replays: a panel for each metric, with a row for each site."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.figures.style import BLACK, PAGE_INCHES, SMALL, figure_style, percent_axis
from analysis.runs import rows_of
from analysis.text import label

ROW = ["site", "network", "protocol"]
MOST_TICKS = 4


def draw(by_site: pd.DataFrame, all_sites: pd.DataFrame, metrics: Sequence[str]) -> Figure:
    """Draw the tables of `studies.fidelity.errors`: points with their intervals, and a band for the median error of all
    sites if `all_sites` has only one row for the metric."""
    rows = list(by_site[ROW].drop_duplicates().itertuples(index=False, name=None))
    several = len({row[1:] for row in rows}) > 1
    with figure_style():
        figure = Figure(figsize=(PAGE_INCHES, 1.0 + 0.2 * len(rows)), layout="constrained")
        panels = figure.subplots(1, len(metrics), sharey=True, squeeze=False)[0]
        for axes, metric in zip(panels, metrics, strict=True):
            of_metric = rows_of(by_site, metric=metric).set_index(ROW)
            for y, row in enumerate(rows):
                if row not in of_metric.index:
                    continue
                values = of_metric.loc[row]
                if np.isfinite(values["error_low"]):
                    axes.plot([values["error_low"], values["error_high"]], [y, y], color=BLACK, linewidth=1)
                axes.plot(values["error"], y, "o", color=BLACK, markersize=3)
            medians = rows_of(all_sites, metric=metric)["median_error"]
            if len(medians) == 1:
                axes.axvspan(-medians.iloc[0] / (1 + medians.iloc[0]), medians.iloc[0], color="0.9", linewidth=0)
            axes.axvline(0, color="0.4", linewidth=0.7)
            axes.set_title(label(metric))
            percent_axis(axes.xaxis, MOST_TICKS)
            axes.tick_params(axis="both", labelsize=SMALL)
        names = [
            f"{site}, {label(protocol)}, {label(network)}" if several else site for site, network, protocol in rows
        ]
        panels[0].set_yticks(range(len(rows)), names)
        panels[0].set_ylim(len(rows) - 0.4, -0.6)
        figure.supxlabel("how much longer a replay takes than a live load", fontsize=SMALL)
        return figure
