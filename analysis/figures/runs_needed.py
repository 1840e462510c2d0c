"""How many runs it takes to find a difference, on half of a campaign's sites."""

from collections.abc import Sequence
from itertools import cycle

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.figures.style import METRIC_DASHES, PAGE_INCHES, figure_style
from analysis.power import DIFFERENCES
from analysis.text import label


def draw(table: pd.DataFrame, networks: Sequence[str], metrics: Sequence[str]) -> Figure:
    """`table` is from `power_table`. A panel for each network, a line for each metric: the runs with which
    the difference is found on half of the sites."""
    with figure_style():
        figure = Figure(figsize=(PAGE_INCHES, 2.4), layout="constrained")
        panels = figure.subplots(1, len(networks), sharey=True, squeeze=False)[0]
        columns = [name for name in table if name.startswith("runs_")]
        for axes, network in zip(panels, networks, strict=True):
            for metric, dashes in zip(metrics, cycle(METRIC_DASHES), strict=False):
                cells = table[(table["network"] == network) & (table["metric"] == metric)][columns]
                middle = cells.replace(np.inf, np.nan).median()
                axes.plot([100 * share for share in DIFFERENCES], middle, linestyle=dashes, label=label(metric))
            axes.axhline(31, color="0.4", linewidth=0.7)
            axes.set(xscale="log", yscale="log", title=label(network), xlabel="difference [%]")
            axes.set_xticks([100 * share for share in DIFFERENCES], [f"{100 * share:g}" for share in DIFFERENCES])
            axes.minorticks_off()
        panels[0].set_ylabel("runs of each protocol")
        panels[-1].legend(fontsize=6.5)
        return figure
