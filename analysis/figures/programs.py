"""The change of one contrast of TCP and QUIC with each of several programs, with its interval, by network."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from analysis.figures.style import (
    BLACK,
    DIRECTIONS,
    ORANGE,
    PAGE_INCHES,
    SMALL,
    figure_style,
    in_paper_order,
    percent_axis,
)
from analysis.programs import DEPENDS, INDEPENDENT
from analysis.statistics.outcomes import NOT_DECIDED
from analysis.text import label
from tuning.devices import described

# The marks of the verdicts on a change of program; and the mark of the first program, which others are compared with.
MARKS = {DEPENDS: (ORANGE, "D"), INDEPENDENT: ("0.2", "s"), NOT_DECIDED: ("0.5", "o")}
FIRST = (BLACK, "*")
TICKS = 4


def draw(gains: pd.DataFrame, differences: pd.DataFrame, networks: Sequence[str]) -> Figure:
    """Draw one contrast and metric. `gains` and `differences` are its rows in the tables of `analysis.programs`. There
    is a panel for each of `networks`, and a row for each set of programs."""
    keys = ["measured_reference", "measured_compared", "browser"]
    rows = gains.drop_duplicates(keys)
    names = [
        f"{row.servers}\n{described(row.browser)}: {label(row.measured_compared)} / {label(row.measured_reference)}"
        for row in rows.itertuples()
    ]
    places = {key: place for place, key in enumerate(rows[keys].itertuples(index=False, name=None))}
    verdicts = differences.set_index(["network", *keys])["verdict"].to_dict()
    with figure_style():
        figure = Figure(figsize=(PAGE_INCHES, 1.0 + 0.36 * len(names)), layout="constrained")
        panels = np.atleast_1d(figure.subplots(1, len(networks), sharey=True, sharex=True))
        for axes, network in zip(panels, in_paper_order(networks), strict=True):
            axes.axvline(0, color="0.4", linewidth=0.7)
            for row in gains[gains["network"] == network].itertuples():
                key = (row.measured_reference, row.measured_compared, row.browser)
                color, marker = MARKS[verdicts[network, *key]] if (network, *key) in verdicts else FIRST
                axes.plot([row.gain_low, row.gain_high], [places[key]] * 2, color=color, linewidth=1.6)
                axes.plot(row.gain, places[key], marker, color=color, markersize=7 if (color, marker) == FIRST else 5)
            axes.set_title(label(network))
            percent_axis(axes.xaxis, TICKS)
            axes.tick_params(labelsize=SMALL)
        panels[0].set_yticks(range(len(names)), names)
        panels[0].set_ylim(len(names) - 0.4, -0.6)
        figure.supxlabel(DIRECTIONS, fontsize=8)
        marks = {"with which others are compared": FIRST, **MARKS}
        for text, (color, marker) in marks.items():
            panels[0].plot([], [], marker, color=color, linestyle="", label=text)
        figure.legend(loc="outside upper center", ncols=4)
        return figure
