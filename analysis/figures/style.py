"""How all figures look: small, in colours that the colour-blind and the grey printer tell apart, fonts embedded."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl
from cycler import cycler
from matplotlib.figure import Figure

# Okabe and Ito's.
BLACK, ORANGE, SKY, GREEN, BLUE, VERMILION, PURPLE = (
    "#000000",
    "#e69f00",
    "#56b4e9",
    "#009e73",
    "#0072b2",
    "#d55e00",
    "#cc79a7",
)
COLUMN_INCHES, PAGE_INCHES = 3.35, 7.0
PNG_DPI = 160

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


@dataclass(frozen=True)
class Look:
    """How a protocol is drawn everywhere; the dashes and the marker tell it in grey."""

    color: str
    dashes: Any
    marker: str


LOOKS = {
    "tcp": Look(BLACK, "-", "s"),
    "tcp+": Look(BLUE, (0, (5, 1.5)), "D"),
    "tcp+bbr": Look(SKY, (0, (5, 1.5, 1, 1.5)), "^"),
    "quic": Look(VERMILION, "-", "o"),
    "quic+bbr": Look(ORANGE, (0, (1.2, 1.2)), "v"),
}
OTHERS = (Look(GREEN, "-", "P"), Look(PURPLE, (0, (3, 1)), "X"), Look("0.5", (0, (1, 1)), "*"))
# Protocols as the paper writes them.
NAMES = {"tcp": "TCP", "tcp+": "TCP+", "tcp+bbr": "TCP+BBR", "quic": "QUIC", "quic+bbr": "QUIC+BBR"}
METRIC_NAMES = {"fvc": "FVC", "lvc": "LVC", "vc85": "VC85", "si": "SI", "plt": "PLT"}
NETWORK_NAMES = {"dsl": "DSL", "lte": "LTE", "da2gc": "DA2GC", "mss": "MSS"}


def look(protocol: str, protocols: Sequence[str]) -> Look:
    """How `protocol` is drawn among all of a figure's `protocols`."""
    unknown = [name for name in protocols if name not in LOOKS]
    return LOOKS[protocol] if protocol in LOOKS else OTHERS[unknown.index(protocol) % len(OTHERS)]


def named(name: str) -> str:
    """A protocol, metric or network as a reader knows it."""
    return NAMES.get(name) or METRIC_NAMES.get(name) or NETWORK_NAMES.get(name) or name


@contextmanager
def styled() -> Iterator[None]:
    """Within it, figures are made in this style."""
    with mpl.rc_context(RC):
        yield


def save(figure: Figure, folder: Path, name: str) -> None:
    """Write `figure` as `name`.pdf and `name`.png into `folder`."""
    with mpl.rc_context(RC):
        # Without a date, so that the same data make the same file.
        figure.savefig(folder / f"{name}.pdf", metadata={"CreationDate": None})
        # What the first has laid out holds for the second.
        figure.set_layout_engine("none")
        figure.savefig(folder / f"{name}.png", dpi=PNG_DPI)
