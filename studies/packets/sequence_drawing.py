"""Sequence diagrams of packets between client and server, protocols side by side, as SVG.

Time runs down the page, alike for all protocols. Its scale is compressed where nothing happens and stretched where much
happens, so that every packet can be read; numbers at the lines and round trips in the background give the time.
"""

import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import jinja2

from analysis.figures.style import line_style
from analysis.text import label
from studies.packets.sequence import Exchange, Step

TEMPLATE = "sequence_drawing.svg.j2"
# All in pixels.
PANEL, MARGIN, TIMES = 560, 12, 52
TOP, BOTTOM = 84, 30
LINE, GAP = 13, 5
# The mean width of a letter, in texts and in sizes.
LETTER, SMALL_LETTER = 6.3, 5.6
HEAD = 7
# The height of a ms where nothing needs more room, and the largest distance of two events.
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
        """Keep the order of all events, and room for the texts of events at the same lifeline."""
        events = []
        for number, exchange in enumerate(exchanges):
            for step in exchange.steps:
                # The text is above the line's beginning.
                events.append((step.sent_ms, (number, step.from_server), LINE * len(step.lines) + GAP))
                if not step.is_lost:
                    events.append((step.received_ms, (number, not step.from_server), LINE))
        self._times_ms: list[float] = []
        self._ys: list[float] = []
        below: dict[tuple[int, bool], float] = {}
        for time_ms, lifeline, room in sorted(events):
            y = float(TOP)
            if self._ys:
                y = self._ys[-1] + min(FARTHEST, PER_MS * (time_ms - self._times_ms[-1]))
            y = max(y, below.get(lifeline, 0) + room)
            below[lifeline] = y
            self._times_ms.append(time_ms)
            self._ys.append(y)

    @property
    def bottom(self) -> float:
        return self._ys[-1] if self._ys else TOP

    @property
    def end_ms(self) -> float:
        return self._times_ms[-1] if self._times_ms else 0.0

    def y(self, time_ms: float) -> float:
        """The place of a time; it is linear between two events."""
        after = bisect_right(self._times_ms, time_ms)
        if after == 0:
            return TOP
        if after == len(self._ys):
            return self._ys[-1]
        (start_ms, end_ms), (top, bottom) = self._times_ms[after - 1 : after + 1], self._ys[after - 1 : after + 1]
        share = (time_ms - start_ms) / (end_ms - start_ms) if end_ms > start_ms else 0
        return top + share * (bottom - top)


def _grid(scale: _Scale, rtt_ms: float) -> Iterable[dict[str, Any]]:
    for number in range(1, int(scale.end_ms / rtt_ms) + 1 if rtt_ms else 0):
        yield {"y": round(scale.y(number * rtt_ms), 1), "label": f"{number} RTT"}


def _panel(protocol: str, exchange: Exchange, left_x: int, scale: _Scale, color: str) -> Mapping[str, Any]:
    client, server = left_x + MARGIN + TIMES, left_x + PANEL - MARGIN - TIMES
    note = f"mean of {exchange.runs} of {exchange.all_runs} runs"
    if exchange.others:
        note += f"; the rest had {exchange.others} other sequence{'s' if exchange.others > 1 else ''}"
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
    size = f"{step.bytes[0]} B" if step.bytes[0] == step.bytes[1] else f"{step.bytes[0]} to {step.bytes[1]} B"
    times = [_time(step.sent_ms, start, y1, outwards=-side)]
    if not step.is_lost:
        times.append(_time(step.received_ms, end, y2, outwards=side))
    texts = [
        _text(words, size if place == 0 else "", start + 8 * side, y1 - GAP - LINE * place + 2, side)
        for place, words in enumerate(reversed(step.lines))
    ]
    return {
        "x1": start,
        "y1": round(y1, 1),
        "x2": round(x2, 1),
        "y2": round(y2, 1),
        "color": ACKNOWLEDGES if only_ack else color,
        "ink": "#777" if only_ack else "#111",
        "stroke": 1 if only_ack else 1.5,
        "anchor": "end" if step.from_server else "start",
        "lost": step.is_lost,
        "head": _head(start, y1, x2, y2),
        "texts": texts,
        "times": times,
    }


def _text(words: str, size: str, x: float, y: float, side: int) -> Mapping[str, Any]:
    """A line of text that begins at `x` or, on the right, ends there, and the box behind it."""
    width = LETTER * len(words) + SMALL_LETTER * (len(size) + 1 if size else 0)
    return {
        "x": round(x, 1),
        "y": round(y, 1),
        "words": words,
        "size": size,
        "width": round(width + 4, 1),
        "left": round((x if side > 0 else x - width) - 2, 1),
    }


def _time(time_ms: float, x: float, y: float, *, outwards: int) -> Mapping[str, Any]:
    anchor = "end" if outwards < 0 else "start"
    return {"x": x + 6 * outwards, "y": round(y + 3.5, 1), "anchor": anchor, "words": f"{time_ms:.1f}"}


def _head(x1: float, y1: float, x2: float, y2: float) -> str:
    """A triangle at the end of a line, as a path."""
    length = math.hypot(x2 - x1, y2 - y1) or 1
    ux, uy = (x2 - x1) / length, (y2 - y1) / length
    corners = [
        (x2, y2),
        *((x2 - HEAD * ux + s * HEAD / 2.6 * uy, y2 - HEAD * uy - s * HEAD / 2.6 * ux) for s in (1, -1)),
    ]
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in corners) + "Z"
