"""Pages that show one large picture, their hero, and the time when a film shows it."""

import io
import json
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from base.places import tool
from dataset.run_files import VISUAL
from films.decoding import Pixels
from films.frames import VISIBLE, is_orange
from record.http1 import Response
from record.site import Exchange, Recording
from support.film_reference import frame_times_ms

PAGE_URL = "https://hero.example/"
# Large enough to arrive in several parts, and smaller than a desktop's window (1366 by 768).
WIDTH, HEIGHT = 1200, 480


@dataclass(frozen=True)
class Area:
    """A part of a film's picture, in pixels."""

    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True)
class Hero:
    """The largest contentful paint of a load according to its browser: its URL, and its final position."""

    url: str
    area: Area


@dataclass(frozen=True)
class Change:
    """When a picture changes in a film, in ms from navigation start: the first change in its place, and its final
    state."""

    began_ms: float
    whole_ms: float


def hero_recordings() -> dict[str, Recording]:
    """Generated pages with one hero each, by name; they differ in how the hero is loaded."""
    picture = f'<img src="{{url}}" width="{WIDTH}" height="{HEIGHT}" alt="hero">'
    style = "body{margin:40px;font:16px serif}"
    url, other_url = f"{PAGE_URL}hero.jpg", "https://pictures.example/hero.jpg"
    background = f"#hero{{width:{WIDTH}px;height:{HEIGHT}px;background:url({url})}}"
    # The script waits until the page has been painted: until then, the text is its largest paint.
    script = f"""<div id="hero" style="height:{HEIGHT}px"></div><script>
        addEventListener("load", () => document.getElementById("hero").innerHTML = '{picture.format(url=url)}');
        </script>"""
    return {
        "own-server": _recording(style, picture.format(url=url), url, _photograph(1)),
        # A progressive image from another server, which does not share its timing with the page (Timing-Allow-Origin).
        "other-server": _recording(style, picture.format(url=other_url), other_url, _photograph(2, progressive=True)),
        "background": _recording(style + background, '<div id="hero"></div>', url, _photograph(3)),
        "by-script": _recording(style, script, url, _photograph(4)),
    }


def _recording(style: str, hero: str, hero_url: str, photograph: bytes) -> Recording:
    text = "".join(f"<p>Line {number} below the picture.</p>" for number in range(4))
    page = f'<!doctype html><title>Hero</title><link rel="stylesheet" href="style.css"><h1>Hero</h1>{hero}{text}'
    answers = [
        (PAGE_URL, "text/html", page.encode()),
        (f"{PAGE_URL}style.css", "text/css", style.encode()),
        (hero_url, "image/jpeg", photograph),
    ]
    servers = {"hero.example": "192.0.2.1", "pictures.example": "192.0.2.2"}
    exchanges = (
        Exchange("GET", url, Response(200, "OK", (("Content-Type", kind),), body), servers[url.split("/")[2]])
        for url, kind, body in answers
    )
    return Recording(PAGE_URL, tuple(exchanges), {"name": "test"})


def _photograph(seed: int, *, progressive: bool = False) -> bytes:
    """A JPEG with the detail of a photograph, and without white."""
    random = np.random.default_rng(seed)
    layers = [
        Image.fromarray(random.integers(0, 220, (-(-HEIGHT // side), -(-WIDTH // side), 3), dtype=np.uint8)).resize(
            (WIDTH, HEIGHT), Image.Resampling.BICUBIC
        )
        for side in (160, 40, 8)
    ]
    picture = np.average([np.asarray(layer) for layer in layers], axis=0, weights=(3, 2, 1))
    file = io.BytesIO()
    Image.fromarray(picture.astype(np.uint8)).save(file, "JPEG", quality=92, progressive=progressive)
    return file.getvalue()


def hero_of(page: dict[str, Any]) -> Hero | None:
    """The hero of a load, from its page's results (the element of `browsertime.json`).

    None if the largest paint is not a picture, or is not in the window.
    """
    (scripts,) = page["browserScripts"]
    url = scripts["timings"].get("largestContentfulPaint", {}).get("url")
    elements = {element["name"]: element for element in scripts["pageinfo"]["visualElements"]["heroes"]}
    viewport = scripts["pageinfo"]["visualElements"]["viewport"]
    element = elements.get("LargestContentfulPaint")
    if not url or not element:
        return None
    x, y = max(0, element["x"]), max(0, element["y"])
    width = min(viewport["width"], element["x"] + element["width"]) - x
    height = min(viewport["height"], element["y"] + element["height"]) - y
    return Hero(url, Area(x, y, width, height)) if width > 0 and height > 0 else None


def change_of(film: Path, area: Area, rest: float) -> Change:
    """The change of `area` from blank to its final look, in `film`. The change begins when more than the share `rest`
    of the pixels differ from the blank picture, and ends when no more than this share differ from the final one. The
    measurement's document must be next to the film."""
    zero_ms = 1000 * json.loads((film.parent / VISUAL).read_text())["zero_s"]
    # Each picture that differs from the one before, with its time; the first one stands at navigation start.
    pictures: list[tuple[float, Pixels]] = []
    for time_ms, picture in zip(frame_times_ms(film), _frames(film, area), strict=True):
        if time_ms <= zero_ms:
            pictures = [(zero_ms, picture)]
        elif not np.array_equal(pictures[-1][1], picture):
            pictures.append((time_ms, picture))
    # The orange may disappear a little later.
    (_, blank), (_, final) = next(one for one in pictures if not is_orange(one[1])), pictures[-1]
    began_ms = next(at_ms for at_ms, picture in pictures if not is_orange(picture) and _unlike(picture, blank) > rest)
    unfinished = [place for place, (_, picture) in enumerate(pictures) if _unlike(picture, final) > rest]
    return Change(began_ms - zero_ms, pictures[unfinished[-1] + 1][0] - zero_ms)


def _frames(film: Path, area: Area) -> Iterator[Pixels]:
    """The pixels in `area` of all frames of `film` (rows by columns by RGB)."""
    command: list[str | Path] = [tool("ffmpeg"), "-v", "error", "-nostdin", "-threads", "1", "-i", film]
    command += ["-vf", f"crop={area.width}:{area.height}:{area.x}:{area.y}", "-fps_mode", "passthrough"]
    size = area.width * area.height * 3
    with subprocess.Popen([*command, "-f", "rawvideo", "-pix_fmt", "rgb24", "-"], stdout=subprocess.PIPE) as process:
        assert process.stdout
        while len(picture := process.stdout.read(size)) == size:
            yield np.frombuffer(picture, dtype=np.uint8).reshape(area.height, area.width, 3)
    assert process.returncode == 0 and not picture


def _unlike(one: Pixels, other: Pixels) -> float:
    """The share of pixels with a visibly different colour."""
    return float((np.abs(one.astype(np.int16) - other) > VISIBLE).any(axis=2).mean())
