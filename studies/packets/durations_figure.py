"""How long the parts of a connection take, over the delay that was added to the network's round trip."""

from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.figure import Figure

from analysis.figures import style
from analysis.statistics.intervals import over_runs
from analysis.text import label

COLUMNS_OF_PANELS = 3
PANEL_INCHES = 1.75


def draw(connections: pd.DataFrame, times: Mapping[str, str], protocols: Sequence[str], confidence: float) -> Figure:
    """Draw a panel for each of `times` (column in ms → name): its mean over runs with Student's interval, over
    `added_ms`, with a line for each protocol. `connections` has a row for each run, with the columns protocol,
    added_ms, and those of `times`."""
    lines = -(-len(times) // COLUMNS_OF_PANELS)
    with style.figure_style():
        figure = Figure(figsize=(style.PAGE_INCHES, 0.5 + PANEL_INCHES * lines), layout="constrained")
        panels = figure.subplots(lines, COLUMNS_OF_PANELS, squeeze=False).ravel()
        for (column, name), axes in zip(times.items(), panels, strict=False):
            for protocol in protocols:
                of_protocol = connections[connections["protocol"] == protocol].groupby("added_ms")[column]
                estimates = {added_ms: over_runs(values.dropna(), confidence) for added_ms, values in of_protocol}
                points = {added_ms: one for added_ms, one in estimates.items() if one.runs}
                looks = style.line_style(protocol, protocols)
                axes.errorbar(
                    list(points),
                    [one.mean for one in points.values()],
                    yerr=list(zip(*(one.reaches for one in points.values()), strict=True)) or None,
                    color=looks.color, linestyle=looks.dashes, marker=looks.marker, markersize=3.5, capsize=2,
                    label=label(protocol),
                )  # fmt: skip
            axes.set_title(name)
            axes.set_ylim(bottom=0)
            axes.set_xticks(sorted(connections["added_ms"].unique()))
        for axes in panels[len(times) :]:
            axes.set_visible(False)
        figure.supxlabel("added to the round trip [ms]", fontsize=style.SMALL + 1)
        figure.supylabel("mean [ms]", fontsize=style.SMALL + 1)
        handles, names = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside upper center", ncols=len(names))
    return figure
