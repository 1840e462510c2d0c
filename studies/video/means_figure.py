"""The means of the plays of all videos on one network, protocols side by side."""

import math
from collections.abc import Mapping, Sequence

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures.style import PAGE_INCHES, SMALL, figure_style, line_style
from analysis.statistics.intervals import Estimate, over_runs
from analysis.text import label, span
from studies.video.play import MEASURES

# The measures that have a panel.
SHOWN = ("first_frame_s", "rebuffer_s", "skipped_s", "loaded_s", "qoe")
ROW_INCHES = 0.32
# An axis from 0 extends at least to this value, even if all values are 0.
LEAST_AXIS = 1.0
# The distance between the lines of two protocols, in rows.
APART = 0.22


def draw(plays: pd.DataFrame, videos: Mapping[str, str], protocols: Sequence[str], confidence: float) -> Figure:
    """Draw a panel for each measure of `SHOWN`, with a row for each of `videos` (site → name): the mean over plays and
    Student's interval, for each of `protocols`. `plays` has a row for each play (`studies.video.tables.table`)."""
    with figure_style():
        height = 0.85 + ROW_INCHES * len(videos) * max(1, len(protocols) / 2)
        figure = Figure(figsize=(PAGE_INCHES, height), layout="constrained")
        panels = figure.subplots(1, len(SHOWN), sharey=True)
        headings = {measure.name: measure.heading.replace("of these, ", "") for measure in MEASURES}
        for axes, name in zip(panels, SHOWN, strict=True):
            least = -math.inf if plays[name].min() < 0 else 0.0
            for place, protocol in enumerate(protocols):
                of_protocol = plays[plays["protocol"] == protocol].groupby("site")[name]
                values = {site: some.dropna() for site, some in of_protocol}
                rows = [row + APART * (place - (len(protocols) - 1) / 2) for row in range(len(videos))]
                estimates = [over_runs(values.get(site, ()), confidence, (least, math.inf)) for site in videos]
                _points(axes, protocol, protocols, rows, estimates)
            axes.set_xlabel(headings[name])
            axes.margins(x=0.08)
            if least == 0:
                axes.set_xlim(0, max(LEAST_AXIS, axes.get_xlim()[1]))
        panels[0].set_yticks(range(len(videos)), [*videos.values()])
        panels[0].set_ylim(len(videos) - 0.5, -0.5)
        panels[-1].axvline(0, color="0.6", lw=0.6, zorder=0)
        counts = plays.groupby(["site", "protocol"]).size().reindex(pd.MultiIndex.from_product([videos, protocols]))
        least, most = int(counts.fillna(0).min()), int(counts.fillna(0).max())
        text = f"{span(least, most)} {'play' if most == 1 else 'plays'} each"
        panels[-1].set_title(text, loc="right", fontsize=SMALL)
        handles, names = panels[0].get_legend_handles_labels()
        figure.legend(handles, names, loc="outside upper left", ncols=len(protocols), fontsize=SMALL)
        return figure


def _points(
    axes: Axes,
    protocol: str,
    protocols: Sequence[str],
    rows: Sequence[float],
    estimates: Sequence[Estimate],
) -> None:
    """Draw the mean and the interval of each of `estimates` at its place in `rows`; skip estimates without a play."""
    points = [(row, one) for row, one in zip(rows, estimates, strict=True) if one.runs]
    looks = line_style(protocol, protocols)
    axes.errorbar(
        [one.mean for _, one in points],
        [row for row, _ in points],
        xerr=list(zip(*(one.reaches for _, one in points), strict=True)) or None,
        color=looks.color,
        linestyle="none",
        marker=looks.marker,
        markersize=4,
        capsize=2,
        clip_on=False,
        label=label(protocol),
    )
