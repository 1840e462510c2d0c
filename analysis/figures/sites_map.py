"""The change at every site on every network in every metric, for one pair of protocols, in one picture."""

from collections.abc import Sequence
from functools import cache

import numpy as np
import pandas as pd
from matplotlib.collections import PathCollection
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Patch
from matplotlib.path import Path
from matplotlib.textpath import TextPath
from matplotlib.transforms import IdentityTransform

from analysis.figures.style import (
    CHANGES,
    HATCH,
    INK,
    PAGE_INCHES,
    PAPER,
    RC,
    SMALL,
    change_bar,
    figure_style,
    in_paper_order,
)
from analysis.runs import rows_of
from analysis.statistics.hypotheses import Pair
from analysis.statistics.outcomes import SIGNIFICANT_P
from analysis.text import label, whole_percent

# The colour does not change beyond this share; the number in the cell still shows the change.
DEEPEST = 0.4
# The relative luminance with the same contrast to black as to white (WCAG 2).
EQUAL_CONTRAST = 0.179


def draw(
    gain_table: pd.DataFrame,
    networks: Sequence[str],
    metrics: Sequence[str],
    pair: Pair,
    sites: Sequence[str] | None = None,
) -> Figure:
    """Draw a row for each site and a column for each network and metric. A cell has the change in percent, bold if it
    is significant; a cell without a change is hatched.

    `gain_table` is from `analysis.statistics.gain.gains`. `sites` names the rows, including sites without a change;
    unless given, all sites of `gain_table` have a row.
    """
    cells, networks = rows_of(gain_table, **pair._asdict()), in_paper_order(networks)
    columns = pd.MultiIndex.from_product([networks, metrics])
    rows = list(cells["site"].unique() if sites is None else sites)
    by_site = {name: cells.pivot(index="site", columns=["network", "metric"], values=name) for name in ("gain", "p")}
    table, p_table = (by_site[name].reindex(index=rows, columns=columns) for name in ("gain", "p"))
    values = table.to_numpy(dtype=float)
    with figure_style():
        # The names of the sites stand on the left, and the scale of the colours below.
        figure = Figure(figsize=(PAGE_INCHES, 1.5 + 0.19 * len(table)), layout="constrained")
        axes = figure.subplots()
        image = axes.imshow(values, cmap=CHANGES, norm=TwoSlopeNorm(0, -DEEPEST, DEEPEST), aspect="auto")
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
        for (text, is_bold, color), cells in _numbers(values, p_table.to_numpy()).items():
            # Outlines, since matplotlib takes seconds to draw so many texts.
            axes.add_collection(
                PathCollection(
                    [outline(text, is_bold)], [1], offsets=cells, offset_transform=axes.transData,
                    transform=IdentityTransform(), facecolors=color, linewidths=0, in_layout=False,
                ),
                autolim=False,
            )  # fmt: skip
        change_bar(figure, image, axes, pad=0.01)
        if not np.isfinite(values).all():
            key = Patch(facecolor="white", edgecolor="0.75", hatch=HATCH, label="no valid runs of both")
            figure.legend(handles=[key], loc="outside lower right")
        return figure


def _numbers(gains: np.ndarray, p: np.ndarray) -> dict[tuple[str, bool, str], list[tuple[int, int]]]:
    """Each number, whether it is bold, and its colour → its cells, as (x, y)."""
    cells: dict[tuple[str, bool, str], list[tuple[int, int]]] = {}
    for y, x in zip(*np.nonzero(np.isfinite(gains)), strict=True):
        color = ink(gains[y, x])
        cells.setdefault((whole_percent(gains[y, x]), p[y, x] < SIGNIFICANT_P, color), []).append((x, y))
    return cells


def ink(gain: float) -> str:
    """The colour of a number on the colour of `gain`: the one with the larger contrast (WCAG 2)."""
    red, green, blue = (((part + 0.055) / 1.055) ** 2.4 for part in CHANGES(0.5 + gain / DEEPEST / 2)[:3])
    return INK if 0.2126 * red + 0.7152 * green + 0.0722 * blue > EQUAL_CONTRAST else PAPER


@cache
def outline(text: str, is_bold: bool) -> Path:
    """The outline of a number in a cell, in points from its middle."""
    font = FontProperties(family=RC["font.family"], weight="bold" if is_bold else "normal")
    letters = TextPath((0, 0), text, size=SMALL, prop=font)
    return Path(letters.vertices - letters.get_extents().get_points().mean(axis=0), letters.codes)
