"""Sequence diagrams of packets between client and server, protocols side by side, as SVG.

Time runs down the page, in the same way for all protocols. Its scale is compressed while nothing happens and stretched
while much happens, so that every packet is legible; numbers at the lines and round trips in the background show the
time.
"""

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import jinja2
import numpy as np

from analysis.figures.style import line_style
from analysis.text import label, plural, span
from studies.packets.sequence import Exchange, Step

TEMPLATE = "sequence_drawing.svg.j2"
# All sizes are in pixels.
PANEL, MARGIN, TIMES = 560, 12, 52
TOP, BOTTOM = 84, 30
LINE, GAP = 13, 5
# The height of a ms if nothing needs more room, and the largest distance between two events.
PER_MS, FARTHEST = 1.2, 46
ACKNOWLEDGES = "#9a9a9a"


def draw(title: str, exchanges: Mapping[str, Exchange], rtt_ms: float) -> str:
    """The diagram as SVG of the exchange over each protocol; round trips of `rtt_ms` are marked."""
    scale = _Scale(exchanges.values())
    height = scale.bottom + BOTTOM
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template(TEMPLATE).render(
        title=title,
        width=PANEL * len(exchanges),
        height=round(height),
        margin=MARGIN,
        top=TOP,
        grid=list(_grid(scale, rtt_ms)),
        panels=[
            _panel(protocol, exchange, number * PANEL, scale, line_style(protocol, list(exchanges)).color)
            for number, (protocol, exchange) in enumerate(exchanges.items())
        ],
    )


class _Scale:
    """The scale from times to places on the page."""

    def __init__(self, exchanges: Iterable[Exchange]) -> None:
        """Place all events on the page, in the order of time. There is room for an event's text above it: the event is
        at least that far below the previous event at the same lifeline."""
        events = []
        for number, exchange in enumerate(exchanges):
            for step in exchange.steps:
                # The text stands above the beginning of the line.
                events.append((step.sent_ms, (number, step.from_server), LINE * len(step.lines) + GAP))
                if not step.is_lost:
                    events.append((step.received_ms, (number, not step.from_server), LINE))
        events.sort()
        self._times_ms = [time_ms for time_ms, *_ in events]
        self._ys: list[float] = []
        y, before_ms = float(TOP), self._times_ms[0]
        below: dict[tuple[int, bool], float] = {}
        for time_ms, lifeline, room in events:
            y = max(y + min(FARTHEST, PER_MS * (time_ms - before_ms)), below.get(lifeline, 0) + room)
            below[lifeline], before_ms = y, time_ms
            self._ys.append(y)
        self.bottom, self.end_ms = y, before_ms

    def y(self, time_ms: float) -> float:
        """The place of a time; it is interpolated linearly between two events."""
        return float(np.interp(time_ms, self._times_ms, self._ys))


def _grid(scale: _Scale, rtt_ms: float) -> Iterable[dict[str, Any]]:
    for number in range(1, int(scale.end_ms / rtt_ms) + 1 if rtt_ms else 0):
        yield {"y": round(scale.y(number * rtt_ms), 1), "label": f"{number} RTT"}


def _panel(protocol: str, exchange: Exchange, left_x: int, scale: _Scale, color: str) -> Mapping[str, Any]:
    client, server = left_x + MARGIN + TIMES, left_x + PANEL - MARGIN - TIMES
    note = f"mean of {exchange.runs} of {exchange.all_runs} runs"
    if exchange.others:
        note += f"; the rest had {plural('other sequence', exchange.others)}"
    return {
        "title": label(protocol),
        "note": note,
        "color": color,
        "middle": (client + server) / 2,
        "client": client,
        "server": server,
        "arrows": [_arrow(step, client, server, scale, color) for step in exchange.steps],
    }


def _arrow(step: Step, client: float, server: float, scale: _Scale, color: str) -> Mapping[str, Any]:
    start, end = (server, client) if step.from_server else (client, server)
    side = -1 if step.from_server else 1
    y1 = scale.y(step.sent_ms)
    # The line of a lost packet ends in the middle.
    x2, y2 = ((start + end) / 2, y1 + LINE) if step.is_lost else (end, scale.y(step.received_ms))
    only_ack = all(line.removesuffix(", PADDING").rpartition(": ")[2] == "ACK" for line in step.lines)
    times = [(step.sent_ms, start, y1, -side), *([] if step.is_lost else [(step.received_ms, end, y2, side)])]
    return {
        "x1": start,
        "y1": round(y1, 1),
        "x2": round(x2, 1),
        "y2": round(y2, 1),
        "degrees": round(math.degrees(math.atan2(y2 - y1, x2 - start)), 2),
        "color": ACKNOWLEDGES if only_ack else color,
        "ink": "#777" if only_ack else "#111",
        "stroke": 1 if only_ack else 1.5,
        "side": side,
        "lost": step.is_lost,
        "size": span(*step.bytes),
        # The lines of text, from the arrow upwards.
        "lines": [(words, round(y1 - GAP - LINE * place + 2, 1)) for place, words in enumerate(reversed(step.lines))],
        "times": [(f"{time_ms:.1f}", x, round(y + 3.5, 1), outwards) for time_ms, x, y, outwards in times],
    }
