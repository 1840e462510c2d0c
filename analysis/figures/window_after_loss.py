"""How each protocol's window responded to one loss, as a validation saw it
(`measure.validate.protocol.loss_response`)."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from analysis.figures.style import PAGE_INCHES, figure_style, line_style
from analysis.text import label

COLUMNS = 4
ROW_INCHES = 1.75


def draw(documents: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Draw a panel for each protocol, by its name: the window in segments over time as seen on the wire, as the server
    itself reports it, and Cubic's curve. Time 0 is the end of the recovery.

    The documents are those of `LossResponse.document`.
    """
    columns = min(COLUMNS, len(documents))
    rows = math.ceil(len(documents) / columns)
    with figure_style():
        figure = Figure(figsize=(PAGE_INCHES, 0.5 + ROW_INCHES * rows), layout="constrained")
        panels = figure.subplots(rows, columns, sharex=True, squeeze=False)
        for panel, (protocol, document) in zip(panels.flat, documents.items(), strict=False):
            _draw_one(panel, protocol, document, list(documents))
        for panel in panels.flat[len(documents) :]:
            panel.set_visible(False)
        # The lowest visible panel of each column has the labels, since a hidden panel may lie below it.
        for panel in panels.flat[max(0, len(documents) - columns) : len(documents)]:
            panel.set_xlabel("s since recovery")
            panel.tick_params(labelbottom=True)
        for row in panels:
            row[0].set_ylabel("segments")
        figure.legend(*panels.flat[0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
        return figure


def _draw_one(panel: Axes, protocol: str, document: Mapping[str, Any], protocols: list[str]) -> None:
    series = {name: np.array(values, float) for name, values in document["series"].items()}
    at_s = series["at_s"]
    known = np.isfinite(series["server"])
    # The data in flight determine the scale: BBR's own window is twice as large.
    top = 1.25 * max(np.nanmax(series["in_flight"]), document["before"])
    panel.plot(at_s[known], series["server"][known], color="0.6", linewidth=0.8, label="by the server's own account")
    panel.plot(at_s, series["in_flight"], color=line_style(protocol, protocols).color, label="in flight, from the wire")
    panel.plot(at_s, series["expected"], color="black", linewidth=0.8, linestyle=":", label="Cubic (RFC 9438)")
    panel.axvspan(-document["rtt_s"], 0, color="0.93", zorder=0, label="recovery")
    panel.set_ylim(0, top)
    kept = document["after"] / document["before"]
    panel.set_title(f"{label(protocol)}: keeps {100 * kept:.0f} %")
