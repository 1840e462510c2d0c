"""The style of all figures: small, with embedded fonts, in colours that colour-blind readers can distinguish and that
differ when printed in grey. A colour has one meaning in all figures: BLUE is faster, VERMILION is slower, and each
protocol has its own.
"""

import io
import re
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
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatter, MaxNLocator
from numpy.typing import ArrayLike

from analysis.statistics.outcomes import EQUAL_ON_AVERAGE, EQUIVALENT, FASTER, NOT_DECIDED, SLOWER
from analysis.text import label
from dataset.metrics import METRICS
from tuning.devices import IN_BROWSER

# The paper's networks in its order, each with where it is used.
NETWORKS = {"dsl": "home line", "lte": "mobile", "da2gc": "in flight, air to ground", "mss": "in flight, satellite"}
# Colours of Okabe and Ito: those of faster and slower, and those of anything but verdicts and protocols.
BLUE, VERMILION = "#0072b2", "#d55e00"
BLACK, ORANGE, SKY, YELLOW, BROWN = "#000000", "#e69f00", "#56b4e9", "#d8c300", "#7f4f24"
# Each verdict's colour and marker.
VERDICT_MARKS = {FASTER: (BLUE, "<"), SLOWER: (VERMILION, ">"), EQUIVALENT: ("0.2", "s"), NOT_DECIDED: ("0.5", "o")}
VERDICT_MARKS |= {EQUAL_ON_AVERAGE: ("0.2", "D")}
# The colours of changes, from faster to slower.
CHANGES = LinearSegmentedColormap.from_list("changes", ["#003f6b", BLUE, "#ffffff", VERMILION, "#7a3300"])
DIRECTIONS = "\N{LEFTWARDS ARROW} faster      change      slower \N{RIGHTWARDS ARROW}"
COLUMN_INCHES, PAGE_INCHES = 3.35, 7.0
PNG_DPI = 160
# The colours on a dark page (page.css) of those that are too dark, or too light, for it. INK and PAPER are for what
# stands on another colour, so they remain.
INK, PAPER = "#010101", "#fefefe"
DARK = {
    BLACK: "#e4e4e4", "#ffffff": "#15181b", BLUE: "#7cc4f2", VERMILION: "#f08a3c", BROWN: "#c79a6b",
    "#1b7837": "#57b36f", "#762a83": "#c58ad6", "#333333": "#d0d0d0", "#4c4c4c": "#b5b5b5", "#666666": "#9a9a9a",
    "#e0e0e0": "#33383d",
    "#e6e6e6": "#3d4248", "#ededed": "#2b3036", "#b2b2b2": "#5a6066",
}  # fmt: skip
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
    "axes.prop_cycle": cycler(color=[BLACK, ORANGE, BROWN, SKY, YELLOW]),
    "grid.color": "0.88",
    "grid.linewidth": 0.5,
    "legend.frameon": False,
    "lines.linewidth": 1.3,
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    # The same figure is the same SVG.
    "svg.hashsalt": "eyelevel",
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


# TCP is black and green, QUIC purple (ColorBrewer's PRGn), lighter with BBR.
LINE_STYLES = {
    "tcp": LineStyle(BLACK, "-", "s"),
    "tcp+": LineStyle("#1b7837", (0, (5, 1.5)), "D"),
    "tcp+bbr": LineStyle("#7fbf7b", (0, (5, 1.5, 1, 1.5)), "^"),
    "quic": LineStyle("#762a83", "-", "o"),
    "quic+bbr": LineStyle("#af8dc3", (0, (1.2, 1.2)), "v"),
}
# The styles of all other protocols, in turn.
OTHER_LINE_STYLES = (
    LineStyle(ORANGE, "-", "P"),
    LineStyle(BROWN, (0, (3, 1)), "X"),
    LineStyle(YELLOW, (0, (1, 1)), "*"),
)
# The dashes of the metrics, in turn.
METRIC_DASHES: tuple[Any, ...] = ("-", "--", ":", "-.", (0, (1, 3)))


def title_with_label(metric: str) -> str:
    """A metric's full title with its label: `Speed Index (SI)`."""
    title = next((entry.title for entry in METRICS if entry.name == metric), "")
    return f"{title[:1].upper()}{title[1:]} ({label(metric)})" if title else label(metric)


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


def place_label(network: str) -> str:
    """The name of a network with where it is used."""
    place = NETWORKS.get(network)
    return f"{label(network)} ({place})" if place else label(network)


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


def percent_axis(axis: Axis, ticks: int) -> None:
    """Write the shares on `axis` in percent, at about so many `ticks`."""
    axis.set_major_formatter(lambda value, _: f"{100 * value:.3g} %".replace("-", "\N{MINUS SIGN}"))
    axis.set_major_locator(MaxNLocator(ticks))


def change_bar(figure: Figure, image: Any, axes: Any, pad: float) -> Any:
    """Draw the scale of the colours of `image`, of changes, below `axes`, in percent with signs."""
    bar = figure.colorbar(image, ax=axes, location="bottom", shrink=0.5, aspect=37, pad=pad, extend="both")
    least, most = image.get_clim()
    bar.set_ticks(np.linspace(least, most, 5).tolist())
    bar.ax.xaxis.set_major_formatter(lambda value, _: f"{100 * value:+.0f} %" if value else "0 %")
    bar.ax.grid(visible=False)
    bar.set_label("change (negative is faster)")
    return bar


def intervals(axes: Axes, lows: ArrayLike, highs: ArrayLike, ys: ArrayLike, color: str) -> None:
    """Draw intervals, as one line with gaps: a hundred lines take a second."""
    ends = np.column_stack([lows, highs, np.full(len(np.asarray(ys)), np.nan)])
    axes.plot(ends.ravel(), np.repeat(ys, 3), color=color, linewidth=1)


def save(figure: Figure, folder: Path, name: str) -> str:
    """Write `figure` as `name`.pdf and `name`.png into `folder`; return it as SVG for a page (`page_svg`)."""
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
        svg = io.StringIO()
        figure.savefig(svg, format="svg", metadata={"Date": None})
    return page_svg(svg.getvalue())


def page_svg(svg: str) -> str:
    """An SVG of Matplotlib's without what a page does not need, as large as the PNG, and with dark colours for readers
    who prefer these."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>|<!--.*?-->", "", svg, flags=re.DOTALL)
    # Numbers below 1 are scales, of which two digits are too few.
    svg = re.sub(r"\b[1-9]\d*\.\d{3,}", lambda number: f"{float(number[0]):.2f}", svg)
    svg = re.sub(
        r'(width|height)="([\d.]+)pt"', lambda size: f'{size[1]}="{float(size[2]) * PNG_DPI / 72:.0f}"', svg, count=2
    )
    return re.sub(r"\s*\n\s*", " ", svg.replace("</style>", f"{_dark_rules()}</style>", 1))


def _dark_rules() -> str:
    """The style of an SVG on a dark page: texts are light, and DARK has all other colours."""
    rules = [
        f'[style*="{what}: {light}"]{{{what}:{dark}!important}}'
        for light, dark in DARK.items()
        for what in ("fill", "stroke")
    ]
    return f"@media screen and (prefers-color-scheme:dark){{svg{{fill:{DARK[BLACK]}}}{''.join(rules)}}}"
