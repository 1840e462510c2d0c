"""Congestion states as graphs: circles are states with their share of time, arrows are transitions.

After Kakhki et al., "Taking a Long Look at QUIC" (IMC 2017), Figure 3.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Circle, FancyArrowPatch

from analysis.figures.style import BLACK, BROWN, INK, ORANGE, PAGE_INCHES, SKY, SMALL, YELLOW, figure_style
from analysis.statistics.intervals import Estimate


@dataclass(frozen=True)
class StateStyle:
    """The style of a state: its name, the colour of its circle, whether text in the circle is white, and its place in
    every graph, in sevenths of a turn from the left, clockwise. No congestion control has two states in one place."""

    label: str
    color: str
    place: float
    is_dark: bool = False


AVOIDANCE = "0.4"
# The states, in the order of tables.
STATES = {
    "application_limited": StateStyle("application\nlimited", "0.78", 0),
    "slow_start": StateStyle("slow\nstart", SKY, 1),
    "startup": StateStyle("startup", SKY, 1),
    "drain": StateStyle("drain", YELLOW, 2),
    "congestion_avoidance": StateStyle("congestion\navoidance", AVOIDANCE, 3, is_dark=True),
    "probe_bw": StateStyle("probe\nbandwidth", AVOIDANCE, 3, is_dark=True),
    "probe_rtt": StateStyle("probe\nRTT", BROWN, 4, is_dark=True),
    "recovery": StateStyle("recovery", ORANGE, 5),
    "pto": StateStyle("probe\ntimeout", BLACK, 6, is_dark=True),
    "rto": StateStyle("retransmission\ntimeout", BLACK, 6, is_dark=True),
}
# The arrow of a transition with a lower probability has no number.
LABEL_PROBABILITY = 0.05
PANEL_INCHES = 3.3
RADIUS, LEAST_RADIUS, MOST_RADIUS = 1.25, 0.17, 0.34
BEND = 0.16
HALF_WIDTH = 2.0


@dataclass(frozen=True)
class Graph:
    """The graph of a setting: its title; state → share of time; transition → its probability; and transition → its
    count."""

    title: str
    shares: Mapping[str, Estimate]
    probabilities: Mapping[tuple[str, str], Estimate]
    counts: Mapping[tuple[str, str], int]


def state_style(state: str) -> StateStyle:
    """The style of `state`, which need not be among STATES."""
    return STATES.get(state, StateStyle(state, "0.5", 2.5))


def state_label(state: str) -> str:
    """The name of a state for readers."""
    return state_style(state).label.replace("\n", " ")


def draw(graphs: Sequence[Graph]) -> Figure:
    """Draw the `graphs` side by side, two to a row."""
    rows = -(-len(graphs) // 2)
    with figure_style():
        figure = Figure(figsize=(PAGE_INCHES, PANEL_INCHES * rows), layout="constrained")
        for number, graph in enumerate(graphs, start=1):
            _draw_one(figure.add_subplot(rows, min(2, len(graphs)), number), graph)
    return figure


def _draw_one(axes: Axes, graph: Graph) -> None:
    circles = {
        state: Circle(_place(state), _radius(share.mean), facecolor=state_style(state).color, edgecolor="black", lw=0.6)
        for state, share in graph.shares.items()
    }
    for (before, after), probability in sorted(graph.probabilities.items(), key=lambda entry: entry[1].mean):
        _arrow(axes, circles[before], circles[after], probability)
    for state, circle in circles.items():
        axes.add_patch(circle)
        _name(axes, state, circle, graph.shares[state])
    axes.set_title(f"{graph.title}, {sum(graph.counts.values())} transitions")
    axes.set_xlim(-HALF_WIDTH, HALF_WIDTH)
    axes.set_ylim(-HALF_WIDTH * 0.87, HALF_WIDTH * 0.87)
    axes.set_aspect("equal")
    axes.axis("off")


def _place(state: str) -> tuple[float, float]:
    angle = math.pi - 2 * math.pi * state_style(state).place / 7
    return RADIUS * math.cos(angle), RADIUS * math.sin(angle)


def _radius(share: float) -> float:
    """The radius of a circle for a state with this `share` of time. It grows with the square root of the share, from
    the smallest that is visible to the largest that fits."""
    return LEAST_RADIUS + (MOST_RADIUS - LEAST_RADIUS) * math.sqrt(share)


def _arrow(axes: Axes, before: Circle, after: Circle, estimate: Estimate) -> None:
    """Draw a bent arrow from circle to circle; the arrow back bends to the other side. It is dashed if the interval of
    the probability includes 0."""
    start, end, probability = before.center, after.center, estimate.mean
    shade = f"{0.72 - 0.6 * probability:.2f}"
    points_a_unit = 72 * PANEL_INCHES / (2 * HALF_WIDTH)
    axes.add_patch(
        FancyArrowPatch(
            start,
            end,
            connectionstyle=f"arc3,rad={BEND}",
            arrowstyle="-|>",
            mutation_scale=8,
            shrinkA=before.radius * points_a_unit,
            shrinkB=after.radius * points_a_unit,
            color=shade,
            lw=0.5 + 1.8 * probability,
            # There is no room for the intervals of all arrows; a table has them.
            linestyle=(0, (3, 2)) if estimate.low <= 0 else "-",
        )
    )
    if probability >= LABEL_PROBABILITY:
        # A point on the quadratic curve whose control point is offset sideways by `BEND` times its length. The point is
        # near the start, since fewer arrows of other states pass there.
        dx, dy = end[0] - start[0], end[1] - start[1]
        control = ((start[0] + end[0]) / 2 + BEND * dy, (start[1] + end[1]) / 2 - BEND * dx)
        t = 0.42
        x = (1 - t) ** 2 * start[0] + 2 * t * (1 - t) * control[0] + t**2 * end[0]
        y = (1 - t) ** 2 * start[1] + 2 * t * (1 - t) * control[1] + t**2 * end[1]
        background = {"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.85}
        axes.text(x, y, f"{probability:.2f}", size=SMALL, ha="center", va="center", bbox=background)


def _name(axes: Axes, state: str, circle: Circle, share: Estimate) -> None:
    """Write the state's name outside its circle with the interval of its share, and the share inside."""
    x, y = circle.center
    out = (circle.radius + 0.07) / RADIUS
    at = (x + x * out, y + y * out)
    horizontal = "center" if abs(x) < 0.35 else ("left" if x > 0 else "right")
    vertical = "center" if abs(y) < 0.35 else ("bottom" if y > 0 else "top")
    name = state_style(state).label
    if share.has_interval:
        name += f"\n{_percent(share.low)} to {_percent(share.high)} %"
    axes.text(*at, name, size=SMALL, ha=horizontal, va=vertical)
    text = f"{_percent(share.mean)} %"
    color = "white" if state_style(state).is_dark else INK
    axes.text(x, y, text, size=SMALL, ha="center", va="center", weight="bold", color=color)


def _percent(share: float) -> str:
    return f"{100 * share:.0f}" if share >= 0.0095 or share == 0 else f"{100 * share:.1f}"
