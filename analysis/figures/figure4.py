"""The paper's Figure 4: film strips of two loads, one above the other, with times and visual completeness."""

import math
from collections.abc import Sequence

from matplotlib.figure import Figure

from analysis.figures.films import Strip
from analysis.figures.style import PAGE_INCHES, SMALL, figure_style
from analysis.text import label

# The space between rows of pictures, for each row's times above it and completeness below it.
BETWEEN_INCHES = 0.54
# The metrics whose names stand below the frame that reaches them.
MILESTONES = ("fvc", "vc85", "plt")


def draw(strips: Sequence[Strip], inches: float = PAGE_INCHES) -> Figure:
    """Draw `strips`, one row each, as wide as `inches`; all have the same times. Below a frame stand the metrics that
    it reached."""
    columns = len(strips[0].times_ms)
    height, width = strips[0].frames[0].shape[:2]
    cell = inches / columns
    with figure_style():
        picture = cell * height / width
        figure = Figure(figsize=(inches, len(strips) * (picture + BETWEEN_INCHES)))
        grid = figure.subplots(len(strips), columns, squeeze=False)
        figure.subplots_adjust(left=0.385 / inches, right=0.995, wspace=0.06, hspace=BETWEEN_INCHES / picture)
        edge = BETWEEN_INCHES / 2 / figure.get_figheight()
        figure.subplots_adjust(top=1 - edge, bottom=edge)
        for row, strip in zip(grid, strips, strict=True):
            milestones = _milestones(strip)
            for place, axes in enumerate(row):
                axes.imshow(strip.frames[place], interpolation="antialiased")
                axes.grid(visible=False)
                axes.set(xticks=[], yticks=[])
                axes.spines[:].set(visible=True, color="0.6", linewidth=0.6)
                complete = strip.complete[place]
                axes.set_title(f"{strip.times_ms[place] / 1000:.2f} s", fontsize=SMALL, pad=2)
                axes.set_xlabel(f"{complete} %\n{milestones.get(place, '')}", fontsize=SMALL, labelpad=2)
                axes.xaxis.label.set_fontweight("bold" if place in milestones else "normal")
            row[0].set_ylabel(label(strip.shot.protocol), fontweight="bold")
        return figure


def _milestones(strip: Strip) -> dict[int, str]:
    """The index of a frame → the labels of the metrics whose times this frame is the first to reach."""
    milestones: dict[int, list[str]] = {}
    for metric in MILESTONES:
        place = next(
            (at for at, time_ms in enumerate(strip.times_ms) if time_ms >= strip.shot.metrics.get(metric, math.inf)),
            None,
        )
        if place is not None:
            milestones.setdefault(place, []).append(label(metric))
    return {place: ", ".join(names) for place, names in milestones.items()}
