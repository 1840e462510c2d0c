"""Visual metrics from a film's thumbnails, the same numbers as those of Browsertime's script.

The script (`visualmetrics-portable.py` of Browsertime 28) decodes the film twice, keeps each picture as a PNG, and
reads these again for each comparison. Here pictures come from the one pass that all questions share. Each function
names its counterpart; what looks odd in one is so there. `tests/measure/run/test_film_analysis.py` and
`tests/proof/test_films.py` compare the results.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from base.errors import EyelevelError
from measure.run.film import ORANGE
from measure.run.pictures import FilmPictures, Pixels

# How far a colour may be off (of 255) in pictures that are alike: noise of 10 %, of 15 % at the end of the film and
# in what is orange.
NOISE = int(0.10 * 255)
MORE_NOISE = int(0.15 * 255)
# How many pixels of the last pictures may differ more than that.
LAST_DIFFERENT_PIXELS = 5
# Among so many thumbnails the first orange one is searched.
STRAY = 21
# The part of a thumbnail that is compared with orange, as a square of so many pixels, of which so many may differ.
ORANGE_SIDE = 200
ORANGE_DIFFERENT_PIXELS = 10_000
# A pixel of which every colour is at least this is white, and not counted.
WHITE = 250
# Of narrower thumbnails nothing is left but the edges, where changes do not count.
LEAST_PIXELS = 51
# The share of a thumbnail's width and height in its middle that is passed over when the first change is searched: the
# script's `--renderignore`, in percent, as Browsertime gives it.
IGNORED_PERCENT = 5


@dataclass(frozen=True)
class VisualMetrics:
    """Times in ms from the film's zero, and Speed Index (ms), as Browsertime's own script computes them.

    `progress` is how complete the page was when, in the script's notation (see `visually_complete`).
    """

    fvc: float
    lvc: float
    vc85: float
    si: float
    progress: str = ""


class Thumbnail(NamedTuple):
    """A thumbnail (rows by columns by RGB) and when it is shown, in ms."""

    time_ms: int
    picture: Pixels


class Region(NamedTuple):
    """A part of a picture, in pixels."""

    width: int
    height: int
    x: int = 0
    y: int = 0

    def of(self, picture: Pixels) -> Pixels:
        """This part of `picture`. As in the script (`crop_im`), the last row and column never belong to it."""
        height, width = picture.shape[:2]
        x, y = min(width - 1, max(self.x, 0)), min(height - 1, max(self.y, 0))
        return picture[y : min(height - 1, y + self.height), x : min(width - 1, x + self.width)]


def visual_metrics(pictures: FilmPictures) -> VisualMetrics:
    """The visual metrics of a film. Raises EyelevelError when it shows only orange, or is too narrow for a page."""
    if min(pictures.thumbnails.shape[1:3]) < LEAST_PIXELS:
        raise EyelevelError(f"no visual metrics: the film is {pictures.width} by {pictures.height} pixels large")
    filmed = [Thumbnail(*both) for both in zip(pictures.thumbnail_times_ms, pictures.thumbnails, strict=True)]
    of_page = _without_orange(_from_orange(filmed))
    if not of_page:
        raise EyelevelError("no visual metrics: the film shows only orange")
    thumbnails = _without_end(_without_blank(_without_unrendered(of_page)))
    zero_ms = thumbnails[0].time_ms
    progress = _progress([_histogram(thumbnail.picture) for thumbnail in thumbnails])
    steps = [(thumbnail.time_ms - zero_ms, percent) for thumbnail, percent in zip(thumbnails, progress, strict=True)]
    text = ", ".join(f"{time_ms}={percent}" for time_ms, percent in steps)
    return VisualMetrics(
        fvc=float(steps[1][0] if len(steps) > 1 else 0),
        lvc=float(steps[-1][0]),
        vc85=float(visually_complete(text, 85)),
        si=float(_speed_index(steps) if len(steps) > 1 else 0),
        progress=text,
    )


def visually_complete(progress: str, percent: int) -> int:
    """When the page reached `percent` of its final look and never again fell below it, in ms.

    `progress` is the script's own notation: `0=0, 66=20, 766=100`.
    """
    reached = None
    for step in progress.split(","):
        time_ms, _, share = step.strip().partition("=")
        if int(share) < percent:
            reached = None
        elif reached is None:
            reached = int(time_ms)
    if reached is None:
        raise ValueError(f"the page never became {percent} % complete")
    return reached


def _from_orange(thumbnails: Sequence[Thumbnail]) -> Sequence[Thumbnail]:
    """Without what is shown before the first orange (`remove_frames_before_orange`)."""
    early = enumerate(thumbnails[:STRAY])
    return thumbnails[next((place for place, thumbnail in early if _is_orange(thumbnail.picture)), 0) :]


def _without_orange(thumbnails: Sequence[Thumbnail]) -> Sequence[Thumbnail]:
    """Without orange at the beginning and the end (`remove_orange_frames`)."""
    first, end = 0, len(thumbnails)
    while first < end and _is_orange(thumbnails[first].picture):
        first += 1
    while first < end and _is_orange(thumbnails[end - 1].picture):
        end -= 1
    return thumbnails[first:end]


def _without_unrendered(thumbnails: Sequence[Thumbnail]) -> Sequence[Thumbnail]:
    """Without what follows the first thumbnail and is like it, or orange (`find_render_start`)."""
    blank = thumbnails[0].picture
    height, width = blank.shape[:2]
    seen = Region(max(width - 10, 1), max(height - 10 - 24, 1), 0, 10)
    ignored = Region(width * IGNORED_PERCENT // 100, height * IGNORED_PERCENT // 100)
    x, y = int(width / 2 - ignored.width / 2), int(height / 2 - ignored.height / 2)
    counts = np.ones((height, width), dtype=bool)
    counts[y : y + ignored.height, x : x + ignored.width] = False
    counts = seen.of(counts)
    place = 1
    while place < len(thumbnails) and (
        not (_different(seen.of(blank), seen.of(thumbnails[place].picture), NOISE) & counts).any()
        or _is_orange(thumbnails[place].picture)
    ):
        place += 1
    return [thumbnails[0], *thumbnails[place:]]


def _without_blank(thumbnails: Sequence[Thumbnail]) -> Sequence[Thumbnail]:
    """Without what follows the first thumbnail and is like it (`eliminate_duplicate_frames`, first pass)."""
    seen = _page(thumbnails[0].picture)
    blank = seen.of(thumbnails[0].picture)
    place = 1
    while place < len(thumbnails) and not _different(blank, seen.of(thumbnails[place].picture), NOISE).any():
        place += 1
    return [thumbnails[0], *thumbnails[place:]]


def _without_end(thumbnails: Sequence[Thumbnail]) -> Sequence[Thumbnail]:
    """Without the thumbnails at the end that show what one before them does (`eliminate_duplicate_frames`, second
    pass)."""
    if len(thumbnails) <= 2:
        return thumbnails
    seen = _page(thumbnails[0].picture)
    last = seen.of(thumbnails[-1].picture)
    place = len(thumbnails) - 1
    while place and np.count_nonzero(_different(last, seen.of(thumbnails[place - 1].picture), MORE_NOISE)) <= (
        LAST_DIFFERENT_PIXELS
    ):
        place -= 1
    return thumbnails[: place + 1]


def _page(picture: Pixels) -> Region:
    """The part of a thumbnail in which changes count."""
    height, width = picture.shape[:2]
    return Region(max(width - 10, 1), max(height - 40 - 10, 1), 0, 40)


def _is_orange(picture: Pixels) -> bool:
    """Whether a part in the middle, at the top or at the bottom of a thumbnail is orange (`is_color_frame`)."""
    height, width = picture.shape[:2]
    half, quarter, fifth = width // 2, width // 4, height // 5
    middle = Region(half, height // 3, quarter, height // 3)
    top, bottom = Region(half, fifth, quarter, 50), Region(half, fifth, quarter, height - fifth)
    return any(_is_orange_part(region.of(picture)) for region in (middle, top, bottom))


def _is_orange_part(picture: Pixels) -> bool:
    square = Image.fromarray(picture).resize((ORANGE_SIDE, ORANGE_SIDE), resample=Image.Resampling.LANCZOS)
    return int(np.count_nonzero(_different(np.asarray(square), ORANGE, MORE_NOISE))) < ORANGE_DIFFERENT_PIXELS


def _different(one: Pixels, other: NDArray[Any], noise: int) -> NDArray[np.bool_]:
    """Which pixels differ by more than `noise` in any colour (`compare`)."""
    return np.asarray((np.abs(one.astype(np.int16) - other) > noise).any(axis=2))


def _histogram(picture: Pixels) -> NDArray[np.int64]:
    """How many pixels that are not white have which value of each colour (`calculate_image_histogram`)."""
    pixels = picture[(picture < WHITE).any(axis=2)]
    return np.array([np.bincount(values, minlength=256) for values in pixels.T])


def _progress(histograms: Sequence[NDArray[np.int64]]) -> list[int]:
    """How complete each picture is, in percent (`calculate_visual_progress`)."""
    first = histograms[0]
    final = np.abs(histograms[-1] - first)
    total = int(final.sum())
    matches = [int(np.minimum(np.abs(histogram - first), final).sum()) for histogram in histograms]
    return [int(match / total * 100) if total else 100 for match in matches]


def _speed_index(steps: Sequence[tuple[int, int]]) -> int:
    """The Speed Index in ms (`calculate_speed_index`)."""
    index, last_ms, complete = 0.0, steps[0][0], float(steps[0][1])
    for time_ms, percent in steps:
        index += (time_ms - last_ms) * (1.0 - complete)
        last_ms, complete = time_ms, percent / 100.0
    return int(index)
