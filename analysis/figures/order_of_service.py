"""The order in which the responses of one page left the server over each protocol, as validation saw it
(`measure.validate.protocol.order_of_service`)."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from analysis.figures.style import PAGE_INCHES, SMALL, figure_style
from analysis.statistics.samples import Array
from analysis.text import label
from dataset.observations import BACKGROUND, URGENT

ROW_INCHES = 1.05
# Bytes that left within this time form one step of an area.
STEP_S = 0.02
SMOOTH_STEPS = 3
# The colours by urgency (RFC 9218), the most urgent first: from dark and warm to light. Incremental responses are
# hatched.
COLORS = ("#7f0000", "#d7301f", "#ef6548", "#fdbb84", "#d0d7de", "#e6eaee", "#f0f2f5", "#f7f8fa")
HATCH = "/////"
# A name is written only if its area is at least this wide, in s.
LEAST_WIDTH_S = 0.06
MOSTLY_PERCENT = 60
# A link in use carries much more than this.
LEAST_BYTES_PER_S = 50_000


def draw(documents: Mapping[str, Mapping[str, Any]]) -> Figure:
    """Draw a panel for each protocol, by its name: the share of each response in the bytes that left the server, over
    time. The most urgent responses are at the bottom. Time 0 is the first request.

    The documents are those of `OrderOfService.document`.
    """
    end_s = max(document["served"][-1][0] for document in documents.values())
    with figure_style():
        figure = Figure(figsize=(PAGE_INCHES, 0.8 + ROW_INCHES * len(documents)), layout="constrained")
        panels = figure.subplots(len(documents), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
        for panel, (protocol, document) in zip(panels, documents.items(), strict=True):
            _draw_one(panel, protocol, document, end_s)
        panels[-1].set_xlabel("s since the first request, at the server")
        figure.supylabel("whose bytes left the server [%]", fontsize=8)
        urgencies = sorted({r["urgency"] for document in documents.values() for r in document["responses"]})
        keys = [Patch(color=COLORS[urgency], label=f"urgency {urgency}") for urgency in urgencies]
        keys.append(Patch(facecolor="white", edgecolor="0.35", hatch=HATCH, label="incremental"))
        figure.legend(handles=keys, loc="outside upper center", ncols=len(keys), handlelength=1.4, columnspacing=1.4)
    return figure


def _draw_one(panel: Axes, protocol: str, document: Mapping[str, Any], end_s: float) -> None:
    responses = sorted(document["responses"], key=lambda r: (r["urgency"], r["asked_s"]))
    edges_s = np.arange(0.0, end_s + 2 * STEP_S, STEP_S)
    sizes = np.array([_bytes(document["served"], response["path"], edges_s) for response in responses])
    total = sizes.sum(axis=0)
    # Nothing is drawn while the server sent next to nothing.
    shares = np.where(total > STEP_S * LEAST_BYTES_PER_S, 100 * sizes / np.maximum(total, 1), 0.0)
    at_s = edges_s[:-1] + STEP_S / 2
    areas = panel.stackplot(at_s, shares, step="mid", colors=[COLORS[r["urgency"]] for r in responses], linewidth=0.3)
    for area, response in zip(areas, responses, strict=True):
        area.set_edgecolor("white" if response["urgency"] < 2 else "0.55")
        if response["incremental"]:
            area.set_hatch(HATCH)
    _write_names(panel, responses, shares, at_s)
    urgent = next(response for response in responses if response["path"] == URGENT)
    numbers = document["numbers"]
    end_of_wait_s = urgent["asked_s"] + numbers["waited_s"]
    panel.axvline(urgent["asked_s"], color="black", linewidth=0.8, linestyle=(0, (2, 1.5)))
    panel.axvspan(urgent["asked_s"], end_of_wait_s, ymin=0, ymax=1, color="black", alpha=0.2, linewidth=0)
    waited = f"urgent: after {numbers['in_front_bytes'] / 1e3:,.0f} kB, {1e3 * numbers['waited_s']:,.0f} ms"
    # The text begins at the end of the wait; if there is no room to the right of it, at the beginning of the wait.
    is_late = end_of_wait_s > 0.7 * end_s
    panel.annotate(
        waited,
        (urgent["asked_s"] if is_late else end_of_wait_s, 0.92),
        xycoords=("data", "axes fraction"),
        xytext=(3, 0),
        textcoords="offset points",
        va="top",
        fontsize=SMALL,
    )
    panel.set_title(f"{label(protocol)}: {numbers['against_priority']:.0%} against priority", loc="left")
    panel.set(xlim=(0, end_s), ylim=(0, 100), yticks=(0, 50, 100))
    panel.grid(visible=False)


def _bytes(served: Sequence[Sequence[Any]], path: str, edges_s: Array) -> Array:
    """The bytes of one response in each step, smoothed a little, since packets leave in bursts."""
    parts = [(at_s, size) for at_s, of, size in served if of == path]
    times_s, sizes = zip(*parts, strict=True)
    in_step, _ = np.histogram(times_s, edges_s, weights=sizes)
    return np.convolve(in_step, np.ones(SMOOTH_STEPS) / SMOOTH_STEPS, "same")


def _write_names(panel: Axes, responses: Sequence[Mapping[str, Any]], shares: Array, at_s: Array) -> None:
    """Write the name of each response at the time in which most bytes belong to it, if there is room."""
    for number, response in enumerate(responses):
        mostly = shares[number] > MOSTLY_PERCENT
        runs = np.flatnonzero(np.diff(np.concatenate(([False], mostly, [False]))))
        begin, end = max(zip(runs[::2], runs[1::2], strict=True), key=lambda run: run[1] - run[0], default=(0, 0))
        if (end - begin) * STEP_S >= LEAST_WIDTH_S and response["path"] != URGENT:
            upright = response["path"] != BACKGROUND
            # The urgent response interrupts the background response near its middle, so the name of the background
            # response stands at three quarters of it.
            middle = (begin + end) // 2 if upright else (begin + 3 * end) // 4
            name = response["path"].strip("/").replace("urgent-", "urgent\n").replace("-", " ")
            panel.text(
                at_s[min(middle, len(at_s) - 1)],
                50,
                name,
                rotation=90 if upright else 0,
                linespacing=0.9,
                ha="center",
                va="center",
                fontsize=SMALL,
                color="white" if response["urgency"] < 2 else "black",
                bbox={"facecolor": COLORS[response["urgency"]], "edgecolor": "none", "pad": 0.6},
            )
