"""The paper's Figure 1: each site's download size and number of servers."""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from analysis.figures.style import figure_style

BAR, LINE = "0.45", "tab:red"


def draw(table: pd.DataFrame, today: Mapping[str, Sequence[float]] | None = None) -> Figure:
    """`table` is from `analysis.sites.site_table`; sites stand side by side in its order.

    `today`: percentiles of today's web, which are drawn as lines: of `bytes` and of `servers`.
    """
    with figure_style():
        figure = Figure(figsize=(max(3.4, 0.8 + 0.24 * len(table)), 3.2), layout="constrained")
        size, servers = figure.subplots(2, 1, sharex=True)
        places = range(len(table))
        size.bar(places, table["bytes"] / 1e6, color=BAR, width=0.7)
        size.set_ylabel("download\n[MB]")
        servers.bar(places, table["servers"], color=BAR, width=0.7)
        servers.set_ylabel("servers")
        servers.set_xticks(places, table["site"], rotation=60, ha="right", rotation_mode="anchor")
        for axes in (size, servers):
            axes.grid(visible=False, axis="x")
            axes.margins(x=0.01)
        if today:
            for axes, heights in ((size, [level / 1e6 for level in today["bytes"]]), (servers, today["servers"])):
                for height in heights:
                    axes.axhline(height, color=LINE, linewidth=0.8, linestyle=":", zorder=3)
        return figure
