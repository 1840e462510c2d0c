"""Changes with their intervals as drawings in a page: SVG in the page's colours, on a common axis."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from markupsafe import Markup

from analysis.text import whole_percent

# An axis has this much more room than its farthest end, on both sides at least for LEAST_MARGINS margins and for
# LEAST_SIDE of the other side. A longer interval than MOST may end in an arrow.
ROOM, LEAST_MARGINS, LEAST_SIDE, MOST = 1.1, 2.0, 0.25, 1.0
# The distances between ticks, of which an axis has at most MOST_TICKS.
STEPS, MOST_TICKS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0), 6
# A label within this share of an end of the axis is aligned with it.
NEAR_END = 0.06


@dataclass(frozen=True)
class Axis:
    """An axis of changes (shares) from `low` to `high`; 0 lies between them."""

    low: float
    high: float

    @classmethod
    def of(cls, changes: Iterable[float], ends: Iterable[float], margins: Iterable[float]) -> "Axis":
        """The axis for these `changes`, for the `ends` of their intervals up to MOST, and for `margins` of equivalence,
        some of which may be NaN."""
        margin = LEAST_MARGINS * max([one for one in margins if math.isfinite(one)], default=0.0)
        values = [*changes, *(min(max(end, -MOST / ROOM), MOST / ROOM) for end in ends), -margin, margin]
        known = [change for change in values if math.isfinite(change)]
        low, high = ROOM * min(known), ROOM * max(known)
        low, high = min(low, -LEAST_SIDE * high), max(high, -LEAST_SIDE * low)
        return cls(low, high) if low < high else cls(-0.1, 0.1)

    def share(self, change: float) -> float:
        """The place of a change, from 0 to 1; of one beyond the axis, that of its end."""
        return (min(max(change, self.low), self.high) - self.low) / (self.high - self.low)

    def place(self, change: float) -> str:
        """The place of a change in percent, as SVG takes it."""
        return f"{100 * self.share(change):.2f}%"

    @property
    def ticks(self) -> list[float]:
        """The changes at which there are ticks."""
        length = self.high - self.low
        step = next((step for step in STEPS if length / step <= MOST_TICKS), STEPS[-1])
        return [number * step for number in range(math.ceil(self.low / step), math.floor(self.high / step) + 1)]


def interval(axis: Axis, change: float, low: float, high: float, margin: float, text: str) -> Markup:
    """A change with its interval from `low` to `high` and the margin of equivalence, any of which may be NaN; `text` is
    its text alternative. Empty without a change."""
    if not math.isfinite(change):
        return Markup("")
    parts = [
        f'<line class="tick" x1="{axis.place(tick)}" x2="{axis.place(tick)}" y1="0" y2="100%"/>' for tick in axis.ticks
    ]
    if math.isfinite(margin):
        begin, end = (100 * axis.share(edge) for edge in (1 / (1 + margin) - 1, margin))
        parts.insert(0, f'<rect class="margin" x="{begin:.2f}%" width="{end - begin:.2f}%" y="0" height="100%"/>')
    parts.append(f'<line class="zero" x1="{axis.place(0)}" x2="{axis.place(0)}" y1="0" y2="100%"/>')
    if math.isfinite(low) and math.isfinite(high):
        parts.append(f'<line class="reach" x1="{axis.place(low)}" x2="{axis.place(high)}" y1="50%" y2="50%"/>')
        arrows = (("◂", low < axis.low, "0", "start"), ("▸", high > axis.high, "100%", "end"))
        parts += [
            f'<text class="beyond" x="{x}" y="50%" dy="0.35em" text-anchor="{side}">{arrow}</text>'
            for arrow, is_beyond, x, side in arrows
            if is_beyond
        ]
    parts.append(f'<circle cx="{axis.place(change)}" cy="50%" r="6"/>')
    return Markup(f'<svg role="img" aria-label="{{}}">{"".join(parts)}</svg>').format(text)


def scale(axis: Axis) -> Markup:
    """The numbers of the axis, in percent."""
    texts = []
    for tick in axis.ticks:
        place = axis.share(tick)
        side = "start" if place < NEAR_END else "end" if place > 1 - NEAR_END else "middle"
        text = f"{whole_percent(tick)} %".replace("-", "\N{MINUS SIGN}")
        texts.append(f'<text x="{axis.place(tick)}" y="1em" text-anchor="{side}">{text}</text>')
    return Markup(f'<svg class="scale" aria-hidden="true">{"".join(texts)}</svg>')
