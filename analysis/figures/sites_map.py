"""The gain of every site on every network in every metric, for one pair of protocols, in one picture."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from analysis.figures.style import HATCH, PAGE_INCHES, SMALL, figure_style, gain_bar
from analysis.runs import rows_of
from analysis.statistics.hypotheses import Pair
from analysis.statistics.outcomes import SIGNIFICANT_P
from analysis.text import label, whole_percent

# The colour does not change beyond this share; the number in the cell still shows the gain.
DEEPEST = 0.4


def draw(
    gain_table: pd.DataFrame,
    networks: Sequence[str],
    metrics: Sequence[str],
    pair: Pair,
    sites: Sequence[str] | None = None,
) -> Figure:
    """Draw a row for each site and a column for each network and metric. A cell has the gain in percent, bold if it is
    significant; a cell without a gain is hatched.

    `gain_table` is from `analysis.statistics.gain.gains`. `sites` names the rows, including sites without a gain;
    unless given, all sites of `gain_table` have a row.
    """
    cells = rows_of(gain_table, **pair._asdict())
    columns = pd.MultiIndex.from_product([networks, metrics])
    rows = list(cells["site"].unique() if sites is None else sites)
    by_site = {name: cells.pivot(index="site", columns=["network", "metric"], values=name) for name in ("gain", "p")}
    table, p_table = (by_site[name].reindex(index=rows, columns=columns) for name in ("gain", "p"))
    p = p_table.to_numpy()
    values = table.to_numpy(dtype=float)
    with figure_style():
        # The names of the sites stand on the left, and the scale of the colours below.
        figure = Figure(figsize=(PAGE_INCHES, 1.5 + 0.19 * len(table)), layout="constrained")
        axes = figure.subplots()
        image = axes.imshow(values, cmap="PuOr", norm=TwoSlopeNorm(0, -DEEPEST, DEEPEST), aspect="auto")
        axes.grid(visible=False)
        # The hatched background is visible where the image has no value.
        axes.patch.set(hatch=HATCH, edgecolor="0.75", linewidth=0)
        axes.spines[:].set_visible(False)
        axes.set_yticks(range(len(table)), table.index, fontsize=SMALL)
        axes.set_xticks(range(len(columns)), [label(metric) for _, metric in columns], fontsize=SMALL)
        axes.tick_params(length=0, top=True, labeltop=True, bottom=False, labelbottom=False)
        for place, network in enumerate(networks):
            middle = place * len(metrics) + (len(metrics) - 1) / 2
            axes.annotate(
                label(network), (middle, -0.5), (0, 14), "data", "offset points", ha="center", fontweight="bold"
            )
            if place:
                axes.axvline(place * len(metrics) - 0.5, color="white", linewidth=3)
        for y, x in zip(*np.nonzero(np.isfinite(values)), strict=True):
            significant = p[y, x] < SIGNIFICANT_P
            axes.text(
                x, y, whole_percent(values[y, x]), ha="center", va="center", fontsize=SMALL,
                fontweight="bold" if significant else "normal",
                color="black" if abs(values[y, x]) < 0.6 * DEEPEST else "white",
            ).set_in_layout(False)  # fmt: skip
        gain_bar(figure, image, axes, pad=0.01).set_label("gain [%] (negative is faster)")
        if not np.isfinite(values).all():
            key = Patch(facecolor="white", edgecolor="0.75", hatch=HATCH, label="no valid runs of both")
            figure.legend(handles=[key], loc="outside lower right")
        return figure
