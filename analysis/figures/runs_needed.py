"""How many runs a difference needs, over the sites of a campaign."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.figures.style import PAGE_INCHES, named, styled
from analysis.power import DIFFERENCES


def draw(table: pd.DataFrame, networks: Sequence[str], metrics: Sequence[str]) -> Figure:
    """`table` is what `power_table` returns: a panel for each network, a line for each metric: the runs with which
    the difference is found on half of the sites."""
    with styled():
        figure = Figure(figsize=(PAGE_INCHES, 2.4), layout="constrained")
        panels = figure.subplots(1, len(networks), sharey=True, squeeze=False)[0]
        columns = [name for name in table if name.startswith("runs_")]
        for axes, network in zip(panels, networks, strict=True):
            for metric, dashes in zip(metrics, ("-", "--", ":", "-.", (0, (1, 3))), strict=False):
                own = table[(table["network"] == network) & (table["metric"] == metric)][columns]
                middle = own.replace(np.inf, np.nan).median()
                axes.plot([100 * share for share in DIFFERENCES], middle, linestyle=dashes, label=named(metric))
            axes.axhline(31, color="0.4", linewidth=0.7)
            axes.set(xscale="log", yscale="log", title=named(network), xlabel="difference [%]")
            axes.set_xticks([100 * share for share in DIFFERENCES], [f"{100 * share:g}" for share in DIFFERENCES])
            axes.minorticks_off()
        panels[0].set_ylabel("runs of each protocol")
        panels[-1].legend(fontsize=6.5)
        return figure
