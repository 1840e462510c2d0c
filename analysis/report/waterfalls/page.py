"""The page of a waterfall: a folder with one HTML file that needs no other files, and the HAR of each load."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import jinja2
from markupsafe import Markup

from analysis.figures.films import Strip
from analysis.report.page import jpeg
from analysis.report.waterfalls.differences import FRAME_MS, Row, default_threshold_ms, rows_of_loads, summary
from analysis.report.waterfalls.loads import PHASES, Load, LoadedRequest, read_load
from analysis.text import NOTHING, file_name, label, label_with_title, listing, ms, plural, signed_ms, unit
from base.errors import EyelevelError
from dataset.har import comparable_url
from films.kept import film_of, frames

HERE = Path(__file__).parent
# The number of pictures of each film over the whole axis.
STRIP_PICTURES = 12
PICTURE_WIDTH, QUALITY = 240, 60
# The number of units of the axis. The thickness of each phase, as a share of its bar: this distinguishes kinds of
# phases without colour, too.
AXIS_UNITS = 1000
HEIGHTS = {"queue": 0.2, "dns": 0.5, "tcp": 0.5, "tls": 0.5, "quic": 0.5, "early": 0.9, "wait": 0.7, "download": 1.0}
BAR_UNITS = 10
# The metrics that are lines across all requests, and the style of each line.
LINES = {"fvc": "dotted", "lcp": "double", "plt": "solid", "lvc": "dashed"}
# Lines of a load that are nearer to each other than this share of the axis (percent) have one common label: on a narrow
# screen there is no room for both.
NAME_SHARE = 14
TICKS = 8
LETTERS = "AB"
# How `analysis.figures.films.typical` chooses the runs whose films a report shows.
FILM_CHOICE = "of the runs that count and have their film, the nearest to their median SI and PLT"


@dataclass(frozen=True)
class Axis:
    """The time axis from the navigation to `end_ms`, with its ticks."""

    end_ms: float

    def share(self, time_ms: float) -> float:
        """The place of a time, in percent of the axis."""
        return round(100 * min(max(time_ms, 0) / self.end_ms, 1), 3)

    @property
    def ticks_ms(self) -> list[float]:
        """Times at even steps of 1, 2 or 5 times a power of ten."""
        least = self.end_ms / TICKS
        power = 10 ** math.floor(math.log10(least))
        step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least * (1 - 1e-9))
        return [step * place for place in range(int(self.end_ms / step) + 1)]


def write_waterfall(loads: Sequence[Load], folder: Path, threshold_ms: float | None = None) -> None:
    """Write `index.html`, the waterfall of one or two `loads`, and their HARs into `folder`, which must exist.

    `threshold_ms`: larger differences of starts and durations are marked; unless given, `default_threshold_ms` decides.
    Raises EyelevelError.
    """
    threshold_ms = default_threshold_ms(loads) if threshold_ms is None else threshold_ms
    rows = rows_of_loads(loads, threshold_ms)
    axis = Axis(max(max(load.end_ms for load in loads), 1.0))
    hars = [f"{letter.lower()}-{stem(load)}.har" for letter, load in zip(LETTERS, loads, strict=False)]
    for name, load in zip(hars, loads, strict=True):
        (folder / name).write_text(load.har)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {
        "label": label,
        "title_of": label_with_title,
        "unit": unit,
        "ms": lambda value: NOTHING if value is None else ms(value),
        "signed_ms": signed_ms,
        "count": lambda value: NOTHING if value is None else f"{value:,}",
        "name": short_name,
        "host": lambda url: urlsplit(url).netloc,
        "both": both,
    }
    lines = {name: style for name, style in LINES.items() if any(name in load.metrics for load in loads)}
    html = environment.get_template("page.html.j2").render(
        loads=loads,
        letters=LETTERS,
        hars=hars,
        rows=rows,
        bars=[[bar(request, axis) if request else None for request in row.requests] for row in rows],
        axis=axis,
        strips=[strip(load, axis) for load in loads],
        phases=PHASES,
        heights=HEIGHTS,
        lines=lines,
        line_names=[line_names(load, axis) for load in loads],
        largest=[largest(load, letter) for letter, load in zip(LETTERS, loads, strict=False) if load.largest],
        painted=[painted(row, loads) for row in rows],
        metrics=[name for name in loads[0].metrics if all(name in load.metrics for load in loads)],
        threshold_ms=threshold_ms,
        summary=summary(loads, rows, threshold_ms) if len(loads) > 1 else "",
        title=title(loads),
        is_same=len({_place(load) for load in loads}) == 1,
        is_one_campaign=_is_one_campaign(loads),
        css=Markup((HERE / "page.css").read_text()),
        plural=plural,
    )
    (folder / "index.html").write_text(html)


def stem(load: Load) -> str:
    """A load as a part of a file's name, from its protocol and attempt: `quic-2-1`."""
    return file_name(f"{load.protocol}-{load.folder.name}").replace("/", "_")


def folder_name(loads: Sequence[Load]) -> str:
    """The name of the folder of a waterfall: `demo-news-lte-tcpplus-1-1-quic-3-1`. If the loads are from two campaigns,
    it has the names of the campaigns, too."""
    firsts = [load is loads[0] or _place(load) != _place(loads[0]) for load in loads]
    places = [f"{load.site}-{load.network}-" if first else "" for load, first in zip(loads, firsts, strict=True)]
    if not _is_one_campaign(loads):
        places = [f"{load.campaign.name}-{place}" for load, place in zip(loads, places, strict=True)]
    name = "-".join(place + stem(load) for place, load in zip(places, loads, strict=True))
    return file_name(name).replace("/", "_")


def _place(load: Load) -> tuple[str, str]:
    return load.site, load.network


def _is_one_campaign(loads: Sequence[Load]) -> bool:
    return len({load.campaign for load in loads}) == 1


def title(loads: Sequence[Load]) -> str:
    """The subject of a waterfall, in a line."""
    runs = [f"{label(load.protocol)} run {load.run}" for load in loads]
    if not _is_one_campaign(loads):
        runs = [f"{run} of {load.campaign.name}" for run, load in zip(runs, loads, strict=True)]
    if len({_place(load) for load in loads}) == 1:
        return f"{loads[0].site} on {label(loads[0].network)}: {' and '.join(runs)}"
    texts = [f"{load.site} on {label(load.network)}, {run}" for run, load in zip(runs, loads, strict=True)]
    return " and ".join(texts)


def bar(request: LoadedRequest, axis: Axis) -> Markup:
    """The phases of a request as SVG, which the page stretches to the width of the axis."""
    parts = []
    for phase, (begin_ms, end_ms) in request.spans.items():
        begin, end = (AXIS_UNITS * axis.share(time_ms) / 100 for time_ms in (begin_ms, end_ms))
        height = BAR_UNITS * HEIGHTS[phase]
        across = f'x="{begin:.2f}" width="{max(end - begin, 0.5):.2f}"'
        place = f'{across} y="{(BAR_UNITS - height) / 2:g}" height="{height:g}"'
        parts.append(f'<rect class="{phase}" {place}/>')
    size = f'viewBox="0 0 {AXIS_UNITS} {BAR_UNITS}" preserveAspectRatio="none" aria-hidden="true"'
    return Markup(f"<svg {size}>{''.join(parts)}</svg>")


def line_names(load: Load, axis: Axis) -> list[tuple[float, str]]:
    """The labels of a load's lines: where each label is, in percent of the axis, and its text."""
    names: list[tuple[float, str]] = []
    for share, metric in sorted((axis.share(load.metrics[name]), name) for name in LINES if name in load.metrics):
        if names and share - names[-1][0] < NAME_SHARE:
            names[-1] = (names[-1][0], f"{names[-1][1]}, {label(metric)}")
        else:
            names.append((share, label(metric)))
    return names


def largest(load: Load, letter: str) -> str:
    """A sentence on the largest paint of `load`: when its picture was requested and arrived, and after which data."""
    paint = load.largest
    text = f"The largest paint (LCP) of {letter}, at {ms(paint['painted_ms'])} ms, is "
    if not paint["url"]:
        return f"{text}text."
    text += f"{short_name(paint['url'])}"
    if paint["requested_ms"] is None:
        return f"{text}; the network log does not have its request."
    ahead = [f"{size / 1000:,.1f} kB {reason}" for reason, size in paint["ahead_bytes"].items() if size]
    others = f"other responses: {listing(ahead)}" if ahead else "no other response"
    return (
        f"{text}: requested at {ms(paint['requested_ms'])} ms with urgency {paint['urgency']}, complete at "
        f"{ms(paint['arrived_ms'])} ms; in between, its connection carried {others}."
    )


def painted(row: Row, loads: Sequence[Load]) -> str:
    """The letters of the loads whose largest paint is the picture of this row."""
    pairs = zip(LETTERS, row.requests, (comparable_url(load.largest.get("url") or "") for load in loads), strict=False)
    return " and ".join(letter for letter, request, url in pairs if request and comparable_url(request.url) == url)


def strip(load: Load, axis: Axis) -> list[tuple[float, str]]:
    """Pictures of the load's film as JPEG (data URLs), each with its time; empty without a film."""
    if not (film := film_of(load.folder, load.campaign)):
        return []
    # At the navigation, the film may still show the mark of its start.
    times_ms = [max(FRAME_MS, axis.end_ms * place / STRIP_PICTURES) for place in range(STRIP_PICTURES)]
    pictures = [jpeg(pixels, PICTURE_WIDTH, QUALITY) for pixels in frames(film, times_ms)]
    return list(zip(times_ms, pictures, strict=True))


def short_name(url: str) -> str:
    """The last part of a URL's path, with its query."""
    parts = urlsplit(url)
    last = parts.path.rstrip("/").rpartition("/")[2] or "/"
    return last + (f"?{parts.query}" if parts.query else "")


def both(row: Row, attribute: str) -> str:
    """A text of both requests of a row: once if they are alike."""
    texts = [str(getattr(request, attribute) or NOTHING) for request in row.requests if request]
    return " / ".join(dict.fromkeys(texts))


def write_waterfalls(groups: Sequence[Sequence[Strip]], campaign: Path, into: Path) -> tuple[dict[str, str], list[str]]:
    """Write waterfalls into the folder `into`: one for the runs in each of a report's `groups` of film strips.

    Returns the name of each waterfall's folder with its title, and a sentence for each waterfall that cannot be made.
    """
    titles, missing = {}, []
    for group in groups:
        shots = [strip.shot for strip in group]
        try:
            loads = [
                read_load(
                    campaign,
                    {**vars(shot), **shot.metrics, "folder": shot.film.parent.relative_to(campaign)},
                    FILM_CHOICE,
                )
                for shot in shots
            ]
            name = folder_name(loads)
            (into / name).mkdir(parents=True)
            write_waterfall(loads, into / name)
            titles[name] = title(loads)
        except EyelevelError as error:
            missing.append(f"There is no waterfall of {shots[0].site} on {label(shots[0].network)}: {error}.")
    return titles, missing
