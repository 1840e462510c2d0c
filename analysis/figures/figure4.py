"""The paper's Figure 4: film strips of two loads, one above the other, with times and visual completeness."""

import math
from collections.abc import Sequence

from matplotlib.figure import Figure

from analysis.figures.films import Strip
from analysis.figures.style import ORANGE, PAGE_INCHES, SMALL, figure_style
from analysis.text import label

# The space between rows of pictures, for each row's times above it and completeness below it, and for metrics.
BETWEEN_INCHES, METRICS_INCHES = 0.36, 0.18
# The metrics whose names stand below the frame that reaches them.
MILESTONES = ("fvc", "vc85", "plt")


def draw(strips: Sequence[Strip], inches: float = PAGE_INCHES) -> Figure:
    """Draw `strips`, one row each, as wide as `inches`; all have the same times. Below a frame stand the metrics that
    it reached; an orange frame marks the first picture of the complete page."""
    columns = len(strips[0].times_ms)
    height, width = strips[0].frames[0].shape[:2]
    cell = inches / columns
    milestones = [_milestones(strip) for strip in strips]
    between = BETWEEN_INCHES + METRICS_INCHES * any(milestones)
    with figure_style():
        picture = cell * height / width
        figure = Figure(figsize=(inches, len(strips) * (picture + between)))
        grid = figure.subplots(len(strips), columns, squeeze=False)
        figure.subplots_adjust(left=0.385 / inches, right=0.995, wspace=0.06, hspace=between / picture)
        edge = between / 2 / figure.get_figheight()
        figure.subplots_adjust(top=1 - edge, bottom=edge)
        for row, strip, reached in zip(grid, strips, milestones, strict=True):
            for place, axes in enumerate(row):
                axes.imshow(strip.frames[place], interpolation="antialiased")
                axes.grid(visible=False)
                axes.set(xticks=[], yticks=[])
                axes.spines[:].set(visible=True, color="0.6", linewidth=0.6)
                if place == strip.first_complete:
                    axes.spines[:].set(color=ORANGE, linewidth=2)
                complete = strip.complete[place]
                axes.set_title(f"{strip.times_ms[place] / 1000:g} s", fontsize=SMALL, pad=2)
                axes.set_xlabel(f"{complete} %\n{reached.get(place, '')}", fontsize=SMALL, labelpad=2)
                axes.xaxis.label.set_fontweight("bold" if place in reached else "normal")
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
