"""The paper's Figure 2: how long single files take from each server, as box plots."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from analysis.figures.style import COLUMN_INCHES, SMALL, figure_style, line_style, plain_log_axis
from analysis.text import label, size_label, span


def draw(table: pd.DataFrame, servers: Mapping[str, str] | None = None) -> Figure:
    """Draw `table`, which has a row for each download: columns protocol, size_bytes, repetition, ms.

    `servers`: protocol → server, for the legend. A box extends from quartile to quartile with the median inside;
    whiskers extend to the last point within 1.5 boxes; points beyond them are drawn singly.
    """
    protocols = list(dict.fromkeys(table["protocol"]))
    sizes = sorted(table["size_bytes"].unique())
    width = 0.8 / len(protocols)
    with figure_style():
        figure = Figure(figsize=(COLUMN_INCHES, 2.4), layout="constrained")
        axes = figure.subplots()
        for place, protocol in enumerate(protocols):
            times = table[table["protocol"] == protocol].groupby("size_bytes")["ms"]
            samples = [
                (at, times.get_group(size).dropna().to_numpy()) for at, size in enumerate(sizes) if size in times.groups
            ]
            boxes = axes.boxplot(
                [values for _, values in samples],
                positions=[at + (place - (len(protocols) - 1) / 2) * width for at, _ in samples],
                widths=0.8 * width,
                patch_artist=True,
                manage_ticks=False,
                medianprops={"color": "white", "linewidth": 1.4},
                flierprops={"marker": ".", "markersize": 3},
            )
            for box in boxes["boxes"]:
                box.set(facecolor=line_style(protocol, protocols).color, linewidth=0.7)
                if place % 2:
                    box.set(hatch="////", edgecolor="black")
        axes.set_xticks(range(len(sizes)), [size_label(size) for size in sizes])
        axes.set_yscale("log")
        plain_log_axis(axes.yaxis)
        axes.set(xlabel="file size", ylabel="download time [ms]")
        axes.grid(axis="x", visible=False)
        handles = [
            Patch(facecolor=line_style(name, protocols).color, edgecolor="black", hatch="////" if place % 2 else "")
            for place, name in enumerate(protocols)
        ]
        names = [label(name) + (f" ({servers[name]})" if servers else "") for name in protocols]
        axes.legend(handles, names, loc="upper left", fontsize=SMALL)
        counts = table.groupby(["protocol", "size_bytes"]).size()
        axes.set_title(f"{span(counts.min(), counts.max())} downloads a box", loc="right", fontsize=SMALL)
        return figure
