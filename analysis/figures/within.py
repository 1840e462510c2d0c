"""Every run of every setting on one network, against the typical time of its site."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from analysis.figures.style import PAGE_INCHES, SMALL, figure_style, line_style
from analysis.statistics.samples import Samples
from analysis.text import label, whole_percent

# The possible ticks of an axis of multiples on both sides of 1, and how far apart they are, as a share of the axis.
BELOW, ABOVE = (0.9, 0.8, 0.7, 0.6, 0.5, 0.3, 0.2, 0.1), (1.1, 1.2, 1.3, 1.5, 2, 3, 5, 10, 20, 50)
APART = 0.08


def ticks_between(low: float, high: float) -> list[float]:
    """The ticks of a logarithmic axis of multiples, none too near to another: 1 and some on both sides of it."""
    ticks = [1.0]
    for side in (BELOW, ABOVE):
        last = 1.0
        for tick in side:
            if low <= tick <= high and abs(np.log(tick / last)) >= APART * np.log(high / low):
                ticks.append(tick)
                last = tick
    return sorted(ticks)


def draw(samples: Samples, network: str, metric: str, protocols: Sequence[str]) -> Figure:
    """Draw a row for each site: by how much each run's time differs from the first protocol's median, on a logarithmic
    axis, with a line at each protocol's median. At a site without runs over the first protocol, the next protocol takes
    its place, and the row names it."""
    network_index, metric_index = samples.networks.index(network), samples.metrics.index(metric)
    values = samples.values[network_index, :, :, metric_index]
    rows = [row for row in range(len(samples.sites)) if np.isfinite(values[row]).any()]
    height = 0.8 / len(protocols)
    # The index of the protocol whose median is 1 in each row: the first that has runs.
    firsts = [int(np.isfinite(values[row]).any(axis=-1).argmax()) for row in rows]
    with figure_style():
        figure = Figure(figsize=(PAGE_INCHES, 0.9 + (0.11 + 0.05 * len(protocols)) * len(rows)), layout="constrained")
        axes = figure.subplots()
        handles = []
        for at, protocol in enumerate(samples.protocols):
            style = line_style(protocol, protocols)
            xs, ys, middles = [], [], []
            for y, row in enumerate(rows):
                times = values[row, at][np.isfinite(values[row, at])]
                typical = np.nanmedian(values[row, firsts[y]])
                if len(times) and typical > 0:
                    level = y + (at - (len(protocols) - 1) / 2) * height
                    xs.append(times / typical)
                    ys.append(np.full(len(times), level))
                    middles.append((np.median(times) / typical, level))
            if not xs:
                continue
            size: Any = {"s": 6, "linewidths": 0, "alpha": 0.55}
            axes.scatter(np.concatenate(xs), np.concatenate(ys), marker=style.marker, color=style.color, **size)
            x, y_middle = np.array(middles).T
            axes.vlines(x, y_middle - height / 2, y_middle + height / 2, color="white", linewidth=2.4)
            axes.vlines(x, y_middle - height / 2, y_middle + height / 2, color=style.color, linewidth=1.4)
            handles.append(axes.plot([], [], style.marker, color=style.color, markersize=4, label=label(protocol))[0])
        axes.set_xscale("log")
        low, high = axes.get_xlim()
        ticks = ticks_between(low, high)
        axes.set_xticks(ticks, [f"{whole_percent(tick - 1)} %".replace("-", "\N{MINUS SIGN}") for tick in ticks])
        axes.minorticks_off()
        axes.axvline(1, color="0.4", linewidth=0.7)
        names = [
            samples.sites[row] + (f" ({label(samples.protocols[first])}: 0)" if first else "")
            for row, first in zip(rows, firsts, strict=True)
        ]
        axes.set_yticks(range(len(rows)), names, fontsize=SMALL)
        axes.set_ylim(len(rows) - 0.4, -0.6)
        axes.set_xlabel(f"{label(metric)} of each run against the median over {label(samples.protocols[0])}")
        figure.legend(handles=handles, loc="outside upper center", ncols=len(handles) or 1)
        return figure
