"""The pictures of README.md: the figure of the reference campaign with its caption, and the films of two loads.

PYTHONPATH=tests:. ~/.cache/eyelevel/venv/bin/python -m support.readme_pictures

writes the figure, and prints its caption. With the folder of a campaign of `make try`, it writes the films instead.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd

from analysis import hypotheses
from analysis.figures import figure4
from analysis.figures.films import Strip, strips, typical
from analysis.figures.style import BLACK, BLUE, DARK, VERMILION
from analysis.runs import load, records, rows_of
from analysis.statistics.outcomes import FASTER, NOT_DECIDED
from analysis.text import label, level, listing, percent
from base.places import PROJECT
from dataset.declaration import HYPOTHESES
from eyelevel.commands.try_ import NETWORK, PROTOCOLS, SITE

PICTURES = PROJECT / "docs" / "pictures"
FIGURE, FILMS, DARK_FILMS = PICTURES / "quic-against-tcp.svg", PICTURES / "try.png", PICTURES / "try-dark.png"
REFERENCE = PROJECT / "data" / "reference"
DECLARED = REFERENCE / "report" / "tables" / "confirmatory.csv"
# The first declared pair, and the metric of when a page is seen.
REFERENCE_PROTOCOL, PROTOCOL, METRIC = "tcp+", "quic", "si"
NAMES = {
    "dsl": "Home DSL",
    "lte": "LTE",
    "da2gc": "In-flight, air to ground (DA2GC)",
    "mss": "In-flight, satellite (MSS)",
}
# Sizes of the figure in pixels: it is as wide as a phone's screen can show without making its type illegible.
WIDTH, TOP, ROW, BOTTOM, MARGIN = 480, 34, 50, 30, 25
LEAST, MOST, TICK = -0.3, 0.1, 0.1
GREY, LIGHT, WHITE = "#595959", "#dddddd", "#ffffff"
# Attributes of texts that keep the lines of the axis off them.
HALO = f'paint-order="stroke" stroke="{WHITE}" stroke-width="3"'
DARK_COLORS = {color: DARK[color] for color in (WHITE, BLUE, VERMILION)} | {GREY: "#a9a9a9", LIGHT: "#3d4248"}
FILM_INCHES, FILM_FRAMES, FILM_DPI = 3.6, 6, 200


def contrasts() -> list[dict[str, Any]]:
    """The rows of the figure, from the reference campaign's report: a declared contrast on each network."""
    table = pd.read_csv(DECLARED)
    return records(rows_of(table, reference=REFERENCE_PROTOCOL, compared=PROTOCOL, metric=METRIC))


def figure() -> str:
    """The figure as SVG, with dark colours for readers who prefer these."""
    rows, networks = contrasts(), json.loads((REFERENCE / "campaign.json").read_text())["settings"]["networks"]
    height = TOP + ROW * len(rows) + BOTTOM
    end = height - BOTTOM
    marks = [
        f'<text x="{x(0) - 8}" y="20" text-anchor="end" fill="{BLUE}">\N{LEFTWARDS ARROW} QUIC faster</text>',
        f'<text x="{x(0) + 8}" y="20" fill="{VERMILION}">slower \N{RIGHTWARDS ARROW}</text>',
    ]
    for number in range(round(LEAST / TICK), round(MOST / TICK) + 1):
        place, color = x(number * TICK), GREY if number == 0 else LIGHT
        text = f"{100 * number * TICK:+.0f} %".replace("-", "\N{MINUS SIGN}") if number else "0"
        marks.append(f'<line x1="{place}" x2="{place}" y1="{TOP}" y2="{end}" stroke="{color}"/>')
        marks.append(f'<text x="{place}" y="{end + 18}" text-anchor="middle" fill="{GREY}">{text}</text>')
    for number, row in enumerate(rows):
        marks += _row(row, networks[row["network"]], TOP + ROW * number)
    dark = "".join(
        f'[{what}="{light}"]{{{what}:{color}}}' for light, color in DARK_COLORS.items() for what in ("fill", "stroke")
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" '
        f'font-size="13" role="img" aria-label="{escape(description())}">\n'
        f"<style>@media (prefers-color-scheme:dark){{svg{{fill:{DARK[BLACK]}}}{dark}}}</style>\n"
        f'<rect width="{WIDTH}" height="{height}" rx="6" fill="{WHITE}"/>\n' + "\n".join(marks) + "\n</svg>\n"
    )


def _row(row: Mapping[str, Any], network: Mapping[str, Any], top: int) -> list[str]:
    """The marks of one network."""
    is_decided, y = row["verdict"] != NOT_DECIDED, top + 34
    color = (BLUE if row["verdict"] == FASTER else VERMILION) if is_decided else GREY
    facts = f"{network['down_mbps']:g} Mbit/s, round trip {network['min_rtt_ms']:g} ms"
    facts += f", {level(network['loss'])} lost" if network["loss"] else ""
    return [
        f'<text x="{MARGIN}" y="{top + 18}" {HALO}><tspan font-weight="bold">{escape(NAMES[row["network"]])}</tspan>'
        f'<tspan dx="8" font-size="11" fill="{GREY}">{facts}</tspan></text>',
        f'<line x1="{x(row["gain_low"])}" x2="{x(row["gain_high"])}" y1="{y}" y2="{y}" stroke="{color}" '
        'stroke-width="3"/>',
        f'<circle cx="{x(row["gain"])}" cy="{y}" r="6" stroke="{color}" stroke-width="3" '
        f'fill="{color if is_decided else WHITE}"/>',
        f'<text x="{WIDTH - 10}" y="{y + 4}" text-anchor="end" fill="{color}" {HALO}>{verdict(row)}</text>',
    ]


def x(gain: float) -> float:
    """The place of a gain on the axis."""
    return round(MARGIN + (WIDTH - 2 * MARGIN) * (gain - LEAST) / (MOST - LEAST), 1)


def verdict(row: Mapping[str, Any]) -> str:
    """The verdict of a row of the figure in words: `10 % faster`."""
    return row["verdict"] if row["verdict"] == NOT_DECIDED else f"{100 * abs(row['gain']):.0f} % {row['verdict']}"


def description() -> str:
    """The figure in words, for those who cannot see it."""
    texts = [f"{percent(row['gain'])} on {NAMES[row['network']]}, {row['verdict']}" for row in contrasts()]
    return f"QUIC changes the Speed Index by {'; '.join(texts)}"


def caption() -> str:
    """The caption of the figure: the comparison, the loads that it rests on, its tests, and loads that do not count."""
    runs, tests = pd.read_csv(REFERENCE / "runs.csv"), len(pd.read_csv(DECLARED))
    runs = runs[runs["protocol"].isin([REFERENCE_PROTOCOL, PROTOCOL])]
    (of_each,) = runs[runs["valid"]].groupby(["site", "network", "protocol"]).size().unique()
    threshold = hypotheses.load(REFERENCE / HYPOTHESES).significant_p
    return (
        "*Time until pages appear (Speed Index) over QUIC, compared with the paper's tuned TCP (TCP+): "
        f"{runs['valid'].sum()} loads of {runs['site'].nunique()} recorded pages, {of_each} over each protocol on each "
        f"network; {(~runs['valid']).sum()} more do not count. Lines are 95 % intervals. Filled dots are significant "
        f"(p < {threshold:g} after correction for {tests} tests); hollow dots are not decided. {_narrow(threshold)}The "
        "test was chosen after the measurement. [How certain this is](docs/reference.md#the-reference-campaign)*"
    )


def _narrow(threshold: float) -> str:
    """The sentence on the rows of the figure that are decided, or not, by less than a tenth of the threshold."""
    narrow = [label(row["network"]) for row in contrasts() if abs(row["p_corrected"] - threshold) < threshold / 10]
    return f"{listing(narrow)} {'are' if len(narrow) > 1 else 'is'} close to that threshold. " if narrow else ""


def write_films(folder: Path) -> None:
    """Write the films of two typical loads of the campaign of `make try` in `folder` as a picture, and as one for dark
    pages."""
    runs = load(folder).runs
    shots = [typical(runs, folder, SITE, NETWORK, protocol) for protocol in PROTOCOLS]
    both = [replace(shot, metrics={"lvc": shot.metrics["lvc"]}) for shot in shots if shot]
    draw_films(strips(both, FILM_FRAMES), FILM_INCHES, FILMS, DARK_FILMS)


def draw_films(films: Sequence[Strip], inches: float, light: Path, dark: Path) -> None:
    """Draw the strips of `films`, so many `inches` wide, as the pictures `light` and `dark`, for pages of these
    colours."""
    ink = ("text.color", "axes.labelcolor")
    themes: dict[Path, dict[Any, str]] = {light: {}, dark: dict.fromkeys(ink, DARK[BLACK])}
    for path, colors in themes.items():
        with mpl.rc_context(colors):
            drawn = figure4.draw(films, inches)
            drawn.savefig(path, dpi=FILM_DPI, transparent=path == dark)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        write_films(Path(sys.argv[1]))
    else:
        FIGURE.write_text(figure())
        print(caption())
