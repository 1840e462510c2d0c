"""In what order the responses of one page left the server over each protocol, as validation saw it
(`measure.validate.order_of_service`)."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from analysis.figures.style import PAGE_INCHES, SMALL, figure_style
from analysis.text import label

COLUMNS = 2
ROW_INCHES = 2.1
# What left within so long is one step of an area.
STEP_S = 0.02
SMOOTH_STEPS = 3
# By urgency (RFC 9218), from the most urgent on: dark and warm to light. Incremental responses are hatched.
COLORS = ("#7f0000", "#d7301f", "#ef6548", "#fdbb84", "#d0d7de", "#e6eaee", "#f0f2f5", "#f7f8fa")
HATCH = "/////"
URGENT, BACKGROUND = "/urgent", "/background"
# A name is written where its area is wide enough, in s.
LEAST_WIDTH_S = 0.075
# Above the rate of the link: what goes into the network's queue at first would hide the rest.
TOP = 1.6


def draw(documents: Mapping[str, Mapping[str, Any]]) -> Figure:
    """A panel for each protocol, by its name: the rate at which the bytes of each response left the server, stacked, over
    time; the most urgent at the bottom. Time is 0 at the first request.

    The documents are those of `OrderOfService.document`.
    """
    columns = min(COLUMNS, len(documents))
    rows = math.ceil(len(documents) / columns)
    end_s = max(served[-1][0] for document in documents.values() if (served := document["served"]))
    with figure_style():
        figure = Figure(figsize=(PAGE_INCHES, 0.7 + ROW_INCHES * rows), layout="constrained")
        panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        for panel, (protocol, document) in zip(panels.flat, documents.items(), strict=False):
            _draw_one(panel, protocol, document, end_s)
        for panel in panels.flat[len(documents) :]:
            panel.set_visible(False)
        for panel in panels.flat[max(0, len(documents) - columns) : len(documents)]:
            panel.set_xlabel("s since the first request")
            panel.tick_params(labelbottom=True)
        for row in panels:
            row[0].set_ylabel("bytes that left [Mbit/s]")
        urgencies = sorted({r["urgency"] for document in documents.values() for r in document["responses"]})
        keys = [Patch(color=COLORS[urgency], label=f"urgency {urgency}") for urgency in urgencies]
        keys.append(Patch(facecolor="white", edgecolor="0.35", hatch=HATCH, label="incremental"))
        figure.legend(handles=keys, loc="outside upper center", ncols=len(keys), handlelength=1.4, columnspacing=1.4)
    return figure


def _draw_one(panel: Axes, protocol: str, document: Mapping[str, Any], end_s: float) -> None:
    responses = sorted(document["responses"], key=lambda r: (r["urgency"], r["asked_s"]))
    edges_s = np.arange(0.0, end_s + 2 * STEP_S, STEP_S)
    rates = [_mbps(document["served"], response["path"], edges_s) for response in responses]
    at_s = edges_s[:-1] + STEP_S / 2
    areas = panel.stackplot(at_s, rates, colors=[COLORS[r["urgency"]] for r in responses], linewidth=0.3)
    for area, response in zip(areas, responses, strict=True):
        area.set_edgecolor("white" if response["urgency"] < 2 else "0.55")
        if response["incremental"]:
            area.set_hatch(HATCH)
    usual = float(np.median(np.sum(rates, axis=0)))
    _write_names(panel, responses, rates, at_s)
    urgent = next(response for response in responses if response["path"] == URGENT)
    numbers = document["numbers"]
    end_of_wait_s = urgent["asked_s"] + numbers["waited_s"]
    panel.axvline(urgent["asked_s"], color="black", linewidth=0.8, linestyle=(0, (2, 1.5)))
    panel.axvspan(urgent["asked_s"], end_of_wait_s, ymin=0, ymax=1, color="black", alpha=0.12, linewidth=0)
    waited = f"urgent: after {numbers['in_front_bytes'] / 1e3:,.0f} kB,\n{1e3 * numbers['waited_s']:,.0f} ms"
    is_late = end_of_wait_s > 0.7 * end_s
    panel.annotate(
        waited,
        (urgent["asked_s"] if is_late else end_of_wait_s, 0.97),
        xycoords=("data", "axes fraction"),
        xytext=(-3 if is_late else 3, 0),
        textcoords="offset points",
        ha="right" if is_late else "left",
        va="top",
        fontsize=SMALL,
    )
    panel.set_title(f"{label(protocol)}: {numbers['against_priority']:.0%} against priority", loc="left")
    panel.set(xlim=(0, end_s), ylim=(0, TOP * usual))
    panel.grid(visible=False)


def _mbps(served: Sequence[Sequence[Any]], path: str, edges_s: Any) -> Any:
    """The rate of one response in each step, smoothed a little: packets leave in bursts."""
    parts = [(at_s, size) for at_s, of, size in served if of == path]
    times, sizes = zip(*parts, strict=True) if parts else ((), ())
    in_step, _ = np.histogram(times, edges_s, weights=sizes)
    return np.convolve(in_step, np.ones(SMOOTH_STEPS) / SMOOTH_STEPS, "same") * 8 / 1e6 / STEP_S


def _write_names(panel: Axes, responses: Sequence[Mapping[str, Any]], rates: Sequence[Any], at_s: Any) -> None:
    """The name of each response where most of it left, if there is room."""
    total = np.sum(rates, axis=0)
    for number, response in enumerate(responses):
        mostly = (rates[number] > 0.6 * total) & (total > 0)
        runs = np.flatnonzero(np.diff(np.concatenate(([False], mostly, [False]))))
        begin, end = max(zip(runs[::2], runs[1::2], strict=True), key=lambda run: run[1] - run[0], default=(0, 0))
        if (end - begin) * STEP_S >= LEAST_WIDTH_S and response["path"] != URGENT:
            middle = (begin + end) // 2
            upright = response["path"] != BACKGROUND
            panel.text(
                at_s[min(middle, len(at_s) - 1)],
                float(np.sum([rate[middle] for rate in rates[:number]])) + rates[number][middle] / 2,
                response["path"].strip("/").replace("-", " "),
                rotation=90 if upright else 0,
                ha="center",
                va="center",
                fontsize=SMALL,
                color="white" if response["urgency"] < 2 else "black",
                bbox={"facecolor": COLORS[response["urgency"]], "edgecolor": "none", "pad": 0.6},
            )
