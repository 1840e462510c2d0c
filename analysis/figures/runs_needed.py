"""How many runs are needed to find a difference over all sites."""

from collections.abc import Sequence
from itertools import cycle

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.figures.style import METRIC_DASHES, PAGE_INCHES, SMALL, figure_style, plain_log_axis
from analysis.statistics.planning import DIFFERENCES, NEEDED
from analysis.text import label, pair_label


def draw(table: pd.DataFrame, networks: Sequence[str]) -> Figure:
    """Draw `table`, which is from `blocks_needed`: a panel for each network, a line for each pair and metric."""
    with figure_style():
        figure = Figure(figsize=(PAGE_INCHES, 2.9), layout="constrained")
        panels = figure.subplots(1, len(networks), sharey=True, squeeze=False)[0]
        for axes, network in zip(panels, networks, strict=True):
            rows = table[table["network"] == network].replace(np.inf, np.nan).to_dict("records")
            for row, dashes in zip(rows, cycle(METRIC_DASHES), strict=False):
                name = f"{pair_label(row['compared'], row['reference'])}, {label(row['metric'])}"
                needed = [row[column] for column in NEEDED.values()]
                axes.plot([100 * share for share in DIFFERENCES], needed, linestyle=dashes, label=name)
            axes.axhline(31, color="0.4", linewidth=0.7)
            axes.set(xscale="log", yscale="log", title=label(network), xlabel="difference [%]")
            axes.set_xticks([100 * share for share in DIFFERENCES], [f"{100 * share:g}" for share in DIFFERENCES])
            axes.minorticks_off()
            plain_log_axis(axes.yaxis)
        panels[0].set_ylabel("runs of each protocol")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, fontsize=SMALL)
        return figure
