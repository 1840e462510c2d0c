"""Heat maps after Kakhki et al. (IMC 2017): the gain of a protocol in each cell, coloured if the test shows a
difference.

Kakhki et al. count a lower page load time as positive; here, as everywhere in this project, faster is negative.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure
from matplotlib.patches import Patch, Rectangle

from analysis.figures.style import CHANGES, INK, PAGE_INCHES, PAPER, SMALL, change_bar, figure_style
from analysis.statistics.outcomes import EQUIVALENT, FASTER, NOT_DECIDED, SLOWER
from analysis.text import whole_percent

# The colour does not change beyond this share; the number in the cell still shows the gain.
DEEPEST = 0.5
NO_VALUE_HATCH = "////"
# Longer names of rows continue on a further line, after a comma.
ROW_CHARACTERS = 24
# The least height of a row, and the height of one line of its name.
ROW_INCHES, LINE_INCHES = 0.35, 0.13
# The face of a cell whose gain has no colour, and the mark next to its number: the marks distinguish verdicts without
# colour.
FACES = {EQUIVALENT: "0.86", NOT_DECIDED: PAPER}
MARKS = {EQUIVALENT: "=", NOT_DECIDED: "?"}


@dataclass(frozen=True)
class Cell:
    """A cell: the gain as a share (None if there is none), the verdict on it, the number of rounds, and a word that
    says why there is no gain."""

    gain: float | None
    verdict: str
    rounds: int
    reason: str = ""

    @property
    def is_coloured(self) -> bool:
        """Whether the cell has a colour for the size of its gain, as cells with a significant difference do."""
        return self.gain is not None and self.verdict in (FASTER, SLOWER)


@dataclass(frozen=True)
class Map:
    """One heat map: its title, which says what varies from column to column, the names of the columns, and its cells by
    row and column."""

    title: str
    columns: Sequence[str]
    cells: Mapping[tuple[int, int], Cell]


BAR_LABEL = "change (negative is faster); below it: rounds"


def draw(maps: Sequence[Map], rows: Sequence[str], *, bar_label: str = BAR_LABEL) -> Figure:
    """Draw `maps` side by side with the same `rows`. A cell shows the gain in percent and below it the number of
    rounds. It is coloured if the verdict is faster or slower, grey with = if it is equivalent, and white with ? if it
    is not decided. A cell without a gain is hatched and shows the reason."""
    widths = [len(heat_map.columns) for heat_map in maps]
    with figure_style():
        names = list(map(in_lines, rows))
        most_lines = max(name.count("\n") + 1 for name in names)
        height = 1.45 + max(ROW_INCHES, LINE_INCHES * most_lines) * len(rows)
        figure = Figure(figsize=(PAGE_INCHES, height), layout="constrained")
        axes = np.atleast_1d(figure.subplots(1, len(maps), sharey=True, gridspec_kw={"width_ratios": widths}))
        for place, (heat_map, ax) in enumerate(zip(maps, axes, strict=True)):
            values = np.full((len(rows), len(heat_map.columns)), np.nan)
            for at, cell in heat_map.cells.items():
                if cell.is_coloured:
                    values[at] = cell.gain
            # The same colours as for the gains of a campaign's sites (`analysis.figures.sites_map`).
            image = ax.imshow(values, cmap=CHANGES, norm=TwoSlopeNorm(0, -DEEPEST, DEEPEST), aspect="auto")
            ax.grid(visible=False)
            ax.set_xticks(range(len(heat_map.columns)), heat_map.columns, fontsize=SMALL)
            ax.set_xlabel(heat_map.title, fontsize=SMALL)
            ax.tick_params(length=0)
            if place == 0:
                ax.set_yticks(range(len(rows)), names, fontsize=SMALL)
            for (y, x), cell in heat_map.cells.items():
                hatch = NO_VALUE_HATCH if cell.gain is None else ""
                face = "none" if cell.is_coloured or cell.gain is None else FACES[cell.verdict]
                ax.add_patch(
                    Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=face, edgecolor="0.75", linewidth=0.5, hatch=hatch)
                )
                _label(ax, x, y, cell)
        bar = change_bar(figure, image, list(axes), pad=0.02)
        bar.set_label(bar_label, fontsize=SMALL)
        bar.ax.tick_params(labelsize=SMALL)
        keys = [
            Patch(facecolor=FACES[verdict], edgecolor="0.6", label=f"{MARKS[verdict]} {verdict}") for verdict in FACES
        ]
        keys.append(
            Patch(facecolor=PAPER, edgecolor="0.6", hatch=NO_VALUE_HATCH, label="no value, for the reason given")
        )
        figure.legend(handles=keys, loc="outside upper right", ncols=3, fontsize=SMALL)
        return figure


def in_lines(name: str) -> str:
    """The name of a row, in lines of at most ROW_CHARACTERS unless a single part is longer."""
    first, *others = name.split(", ")
    lines = [first]
    for part in others:
        if len(lines[-1]) + len(part) + 2 <= ROW_CHARACTERS:
            lines[-1] += f", {part}"
        else:
            lines.append(part)
    return ",\n".join(lines)


def _label(ax: Axes, x: int, y: int, cell: Cell) -> None:
    box = None
    if cell.gain is None:
        text, color, box = cell.reason, INK, {"facecolor": PAPER, "edgecolor": "none", "pad": 0.6}
    else:
        text = f"{whole_percent(cell.gain)} {MARKS.get(cell.verdict, '')}".rstrip() + f"\n({cell.rounds})"
        color = PAPER if cell.is_coloured and abs(cell.gain) > 0.4 * DEEPEST else INK
    ax.text(
        x, y, text, ha="center", va="center", fontsize=SMALL, linespacing=0.95, color=color, bbox=box
    ).set_in_layout(False)  # fmt: skip
