"""Heat maps as Kakhki et al. (IMC 2017) draw them: the difference of two protocols' page load times in each cell."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from analysis.figures.style import PAGE_INCHES, figure_style, gain_bar
from analysis.outcomes import SIGNIFICANT_P

# Beyond this share the colour stays the same; the number in the cell goes on.
DEEPEST = 0.5
HATCH = "////"


@dataclass(frozen=True)
class Cell:
    """The difference as a share (None when there is none), its p value, the number of rounds, and one word for why
    there is no difference."""

    difference: float | None
    p: float
    rounds: int
    reason: str = ""

    @property
    def is_significant(self) -> bool:
        """Whether the difference is significant; otherwise the cell is white."""
        return self.difference is not None and self.p < SIGNIFICANT_P


@dataclass(frozen=True)
class Map:
    """One heat map: what varies from column to column, their names, and its cells by the places of row and column."""

    title: str
    columns: Sequence[str]
    cells: Mapping[tuple[int, int], Cell]


def draw(maps: Sequence[Map], rows: Sequence[str], faster: str) -> Figure:
    """`maps` side by side with the same `rows`: percent in colour where it is significant, in white where it is not,
    hatched with the reason where there is none; below the percent the number of rounds. Positive: `faster` is
    faster."""
    widths = [len(heat_map.columns) for heat_map in maps]
    with figure_style():
        height = 1.35 + 0.3 * len(rows)
        figure = Figure(figsize=(PAGE_INCHES, height), layout="constrained")
        axes = np.atleast_1d(figure.subplots(1, len(maps), sharey=True, gridspec_kw={"width_ratios": widths}))
        for place, (heat_map, ax) in enumerate(zip(maps, axes, strict=True)):
            values = np.full((len(rows), len(heat_map.columns)), np.nan)
            for at, cell in heat_map.cells.items():
                if cell.is_significant:
                    values[at] = cell.difference
            # Red: the newer protocol is faster, as in the original.
            image = ax.imshow(values, cmap="RdBu_r", norm=TwoSlopeNorm(0, -DEEPEST, DEEPEST), aspect="auto")
            ax.grid(visible=False)
            ax.set_xticks(range(len(heat_map.columns)), heat_map.columns, fontsize=6)
            ax.set_xlabel(heat_map.title, fontsize=7)
            ax.tick_params(length=0)
            if place == 0:
                ax.set_yticks(range(len(rows)), rows, fontsize=6)
            for (y, x), cell in heat_map.cells.items():
                ax.add_patch(
                    Rectangle(
                        (x - 0.5, y - 0.5), 1, 1, facecolor="none", edgecolor="0.75", linewidth=0.5,
                        hatch="" if cell.difference is not None else HATCH,
                    )
                )  # fmt: skip
                _label(ax, x, y, cell)
        bar = gain_bar(figure, image, list(axes), pad=0.02)
        bar.set_label(f"positive (red): {faster} is faster; below the percent: rounds", fontsize=6.5)
        bar.ax.tick_params(labelsize=6)
        keys = [
            Patch(facecolor="white", edgecolor="0.6", label=f"not significant (p ≥ {SIGNIFICANT_P})"),
            Patch(facecolor="white", edgecolor="0.6", hatch=HATCH, label="no value, for the reason given"),
        ]
        figure.legend(handles=keys, loc="outside upper right", ncols=2, fontsize=6)
        return figure


def _label(ax: object, x: int, y: int, cell: Cell) -> None:
    if cell.difference is None:
        text, color = cell.reason, "black"
    else:
        text = f"{round(100 * cell.difference):+d}\n({cell.rounds})"
        color = "white" if cell.is_significant and abs(cell.difference) > 0.7 * DEEPEST else "black"
        color = color if cell.is_significant else "0.35"
    box = {"facecolor": "white", "edgecolor": "none", "pad": 0.6} if cell.difference is None else None
    ax.text(  # type: ignore[attr-defined]
        x, y, text, ha="center", va="center", fontsize=5.5, linespacing=0.95, color=color, bbox=box
    ).set_in_layout(False)  # fmt: skip
