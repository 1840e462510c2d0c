"""The times of waiting for an object and of downloading it, as stacked bars (Kakhki et al., IMC 2017)."""

from collections.abc import Sequence

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from analysis.figures.style import COLUMN_INCHES, PAGE_INCHES, figure_style, line_style
from analysis.text import label


def draw(timings: pd.DataFrame, networks: Sequence[tuple[str, str]], protocols: Sequence[str]) -> Figure:
    """A bar for each protocol behind each of `networks` (names and labels): the mean time until the
    first byte below, until the last above it, with the standard deviation of their sum.

    `timings` has a row for each run: network, protocol, wait_ms, receive_ms.
    """
    width = 0.8 / len(protocols)
    with figure_style():
        size = COLUMN_INCHES if len(networks) < 3 else PAGE_INCHES
        figure = Figure(figsize=(size, 2.4), layout="constrained")
        axes = figure.subplots()
        for number, protocol in enumerate(protocols):
            color = line_style(protocol, protocols).color
            for place, (network, _) in enumerate(networks):
                runs = timings[(timings["network"] == network) & (timings["protocol"] == protocol)]
                if runs.empty:
                    continue
                at = place + (number - (len(protocols) - 1) / 2) * width
                wait_ms, receive_ms = runs["wait_ms"].mean(), runs["receive_ms"].mean()
                axes.bar(at, wait_ms, 0.85 * width, color=color)
                sd_ms = (runs["wait_ms"] + runs["receive_ms"]).std(ddof=1) if len(runs) > 1 else 0.0
                axes.bar(
                    at, receive_ms, 0.85 * width, bottom=wait_ms, facecolor="none", edgecolor=color, hatch="////",
                    yerr=sd_ms or None, error_kw={"linewidth": 0.8, "capsize": 2},
                )  # fmt: skip
                axes.annotate(
                    f"{wait_ms:.0f} + {receive_ms:.0f}\n({len(runs)})", (at, wait_ms + receive_ms + sd_ms), (0, 3),
                    textcoords="offset points", ha="center", fontsize=5.5,
                )  # fmt: skip
        axes.margins(y=0.2)
        axes.set_xticks(range(len(networks)), [text for _, text in networks], fontsize=6)
        axes.grid(axis="x", visible=False)
        axes.set_ylabel("time [ms]")
        keys = [Patch(facecolor=line_style(name, protocols).color, label=label(name)) for name in protocols]
        keys += [
            Patch(facecolor="0.5", label="wait"),
            Patch(facecolor="none", edgecolor="0.4", hatch="////", label="download"),
        ]
        axes.legend(handles=keys, fontsize=6, ncols=2, loc="lower center", bbox_to_anchor=(0.5, 1.0))
        return figure
