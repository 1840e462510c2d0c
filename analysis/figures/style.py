"""The style of all figures: small, with embedded fonts, in colours that colour-blind readers can distinguish and that
differ when printed in grey."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from cycler import cycler
from fontTools import subset
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter
from numpy.typing import ArrayLike

from tuning.devices import IN_BROWSER

# The paper's networks in its order, each with where it is used.
NETWORKS = {"dsl": "home line", "lte": "mobile", "da2gc": "in flight, air to ground", "mss": "in flight, satellite"}
# The colours of Okabe and Ito.
BLACK, ORANGE, SKY, GREEN = "#000000", "#e69f00", "#56b4e9", "#009e73"
BLUE, VERMILION, PURPLE = "#0072b2", "#d55e00", "#cc79a7"
COLUMN_INCHES, PAGE_INCHES = 3.35, 7.0
PNG_DPI = 160
# The size of the smallest type, in points; conferences require it in camera-ready figures.
SMALL = 7.0
# The hatch of cells that have no value.
HATCH = "////"

RC: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.prop_cycle": cycler(color=[BLUE, VERMILION, GREEN, ORANGE, PURPLE, SKY, BLACK]),
    "grid.color": "0.88",
    "grid.linewidth": 0.5,
    "legend.frameon": False,
    "lines.linewidth": 1.3,
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
}
# A PDF stores the place of each glyph, so it does not need the tables that lay text out. Subsetting these took a
# quarter of a figure's time.
subset.Options._drop_tables_default = [*subset.Options._drop_tables_default, "GDEF", "GPOS", "GSUB"]


@dataclass(frozen=True)
class LineStyle:
    """The style of a protocol in all figures; dashes and marker distinguish it in grey, too."""

    color: str
    dashes: Any
    marker: str


LINE_STYLES = {
    "tcp": LineStyle(BLACK, "-", "s"),
    "tcp+": LineStyle(BLUE, (0, (5, 1.5)), "D"),
    "tcp+bbr": LineStyle(SKY, (0, (5, 1.5, 1, 1.5)), "^"),
    "quic": LineStyle(VERMILION, "-", "o"),
    "quic+bbr": LineStyle(ORANGE, (0, (1.2, 1.2)), "v"),
}
# The styles of all other protocols, in turn.
OTHER_LINE_STYLES = (
    LineStyle(GREEN, "-", "P"),
    LineStyle(PURPLE, (0, (3, 1)), "X"),
    LineStyle("0.5", (0, (1, 1)), "*"),
)
# The dashes of the metrics, in turn.
METRIC_DASHES: tuple[Any, ...] = ("-", "--", ":", "-.", (0, (1, 3)))


def in_paper_order(networks: Iterable[str]) -> list[str]:
    """`networks` with the paper's first, in its order; a network in a browser stands with the network."""
    order = list(NETWORKS)
    names = {name: name.partition(IN_BROWSER)[0] for name in networks}
    return sorted(names, key=lambda name: order.index(names[name]) if names[name] in order else len(order))


def line_style(protocol: str, protocols: Sequence[str]) -> LineStyle:
    """The style of `protocol` among all `protocols` of a figure."""
    if protocol in LINE_STYLES:
        return LINE_STYLES[protocol]
    others = [name for name in protocols if name not in LINE_STYLES]
    return OTHER_LINE_STYLES[others.index(protocol) % len(OTHER_LINE_STYLES)]


@contextmanager
def figure_style() -> Iterator[None]:
    """Gives the style to all figures that are made within this context."""
    with mpl.rc_context(RC):
        yield


class _PlainNumbers(LogFormatter):
    def __call__(self, x: float, pos: int | None = None) -> str:
        """The number `x` in full, where the usual formatter would write a power."""
        return f"{x:,.10g}" if super().__call__(x, pos) else ""


def plain_log_axis(axis: Axis) -> None:
    """Write the numbers of a logarithmic `axis` without exponents, since the type of exponents is smaller than
    SMALL."""
    axis.set_major_formatter(_PlainNumbers())
    axis.set_minor_formatter(_PlainNumbers())


def gain_bar(figure: Figure, image: Any, axes: Any, pad: float) -> Any:
    """Draw the scale of the colours of `image` below `axes`, in percent with signs."""
    bar = figure.colorbar(image, ax=axes, location="bottom", shrink=0.5, aspect=37, pad=pad, extend="both")
    bar.ax.xaxis.set_major_formatter(lambda value, _: f"{100 * value:+.0f} %" if value else "0 %")
    bar.ax.grid(visible=False)
    return bar


def intervals(axes: Axes, lows: ArrayLike, highs: ArrayLike, ys: ArrayLike, color: str) -> None:
    """Draw intervals, as one line with gaps: a hundred lines take a second."""
    ends = np.column_stack([lows, highs, np.full(len(np.asarray(ys)), np.nan)])
    axes.plot(ends.ravel(), np.repeat(ys, 3), color=color, linewidth=1)


def save(figure: Figure, folder: Path, name: str) -> None:
    """Write `figure` as `name`.pdf and `name`.png into `folder`."""
    with mpl.rc_context(RC):
        if engine := figure.get_layout_engine():
            # With a layout engine, `savefig` draws a figure twice: first without output, for its layout. The PDF keeps
            # the layout that was computed for the PNG, since texts are some percent wider in a PNG.
            figure.set_dpi(PNG_DPI)
            engine.execute(figure)
            figure.set_layout_engine(None)
        figure.savefig(folder / f"{name}.png", dpi=PNG_DPI)
        # No date is written, so that the same data make the same file.
        figure.savefig(folder / f"{name}.pdf", metadata={"CreationDate": None})
