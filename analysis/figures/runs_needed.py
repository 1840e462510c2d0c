"""How many runs are needed to find a change over all sites."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.figures.style import (
    METRIC_DASHES,
    PAGE_INCHES,
    SMALL,
    figure_style,
    in_paper_order,
    line_style,
    plain_log_axis,
)
from analysis.statistics.planning import DIFFERENCES, NEEDED
from analysis.text import label, pair_label


def draw(table: pd.DataFrame, networks: Sequence[str]) -> Figure:
    """Draw `table`, which is from `blocks_needed`: a panel for each network, a line for each pair and metric, in the
    colour of the compared protocol and the dashes of the metric."""
    metrics, compared = (list(dict.fromkeys(table[name])) for name in ("metric", "compared"))
    with figure_style():
        figure = Figure(figsize=(PAGE_INCHES, 2.9), layout="constrained")
        panels = figure.subplots(1, len(networks), sharey=True, squeeze=False)[0]
        for axes, network in zip(panels, in_paper_order(networks), strict=True):
            for row in table[table["network"] == network].replace(np.inf, np.nan).to_dict("records"):
                axes.plot(
                    [100 * share for share in DIFFERENCES],
                    [row[column] for column in NEEDED.values()],
                    color=line_style(row["compared"], compared).color,
                    linestyle=METRIC_DASHES[metrics.index(row["metric"]) % len(METRIC_DASHES)],
                    label=f"{pair_label(row['compared'], row['reference'])}, {label(row['metric'])}",
                )
            axes.axhline(31, color="0.4", linewidth=0.7)
            axes.set(xscale="log", yscale="log", title=label(network), xlabel="change to be shown [%]")
            axes.set_xticks([100 * share for share in DIFFERENCES], [f"{100 * share:g}" for share in DIFFERENCES])
            axes.minorticks_off()
            plain_log_axis(axes.yaxis)
        panels[0].set_ylabel("runs of each page\nand protocol")
        handles = {name: line for axes in panels for line, name in zip(*axes.get_legend_handles_labels(), strict=True)}
        figure.legend(list(handles.values()), list(handles), loc="outside lower center", ncols=3, fontsize=SMALL)
        return figure
