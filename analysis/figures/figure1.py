"""The paper's Figure 1: each site's download size and number of servers."""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from analysis.figures.style import figure_style

BAR, RECORDED, TODAY = "0.45", "black", "tab:red"
# The column of a site's recording → that of its loads, which the paper has; its title; its unit.
PANELS = {"bytes": ("loaded_bytes", "download\n[MB]", 1e6), "servers": ("contacted_servers", "servers", 1)}


def draw(table: pd.DataFrame, today: Mapping[str, Sequence[float]] | None = None) -> Figure:
    """`table` is from `analysis.sites.site_table`, with the medians of the loads (`analysis.runs.LOADED`) if there are
    any; sites stand side by side in its order. Bars are loads, and short lines the recording; without any load, bars
    are the recording.

    `today`: percentiles of today's web, which are drawn as lines: of `bytes` and of `servers`.
    """
    with figure_style():
        figure = Figure(figsize=(max(3.4, 0.8 + 0.24 * len(table)), 3.2), layout="constrained")
        places = range(len(table))
        panels = figure.subplots(2, 1, sharex=True)
        for axes, (recorded, (loaded, title, scale)) in zip(panels, PANELS.items(), strict=True):
            if loaded in table and table[loaded].notna().any():
                axes.bar(places, table[loaded] / scale, color=BAR, width=0.7, label="loaded")
                axes.plot(places, table[recorded] / scale, "_", color=RECORDED, markersize=8, label="recorded")
            else:
                axes.bar(places, table[recorded] / scale, color=BAR, width=0.7)
            axes.set_ylabel(title)
            axes.grid(visible=False, axis="x")
            axes.margins(x=0.01)
            for place, height in enumerate(today[recorded] if today else ()):
                label = "" if place else "today's web"
                axes.axhline(height / scale, color=TODAY, linewidth=0.8, linestyle=":", zorder=3, label=label)
            if axes.get_legend_handles_labels()[0]:
                axes.legend(loc="upper left")
        axes.set_xticks(places, table["site"], rotation=60, ha="right", rotation_mode="anchor")
        return figure
