"""Visual metrics from a film's thumbnails, the same numbers as those of Browsertime's script.

The script (`visualmetrics-portable.py` of Browsertime 28) decodes a film twice, stores each picture as a PNG, and reads
these again for each comparison. Here the pictures come from the single pass through the film. Each function names its
counterpart in the script; if it does something odd, so does the counterpart. Only the zero of times differs: the script
counts from the first picture after the orange, this module from navigation start. `tests/films/test_film_analysis.py`
and `tests/proof/test_films.py` compare the results.
"""

import itertools
import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from base.errors import EyelevelError
from films.decoding import Pixels, decode
from films.frames import ORANGE
from films.log import FilmLog

# How much a colour (0 to 255) may differ between pictures that count as alike: by 10 %; by 15 % when the last pictures
# are compared, and when a picture is compared with orange.
NOISE = int(0.10 * 255)
MORE_NOISE = int(0.15 * 255)
# How many pixels of the last pictures may differ by more than MORE_NOISE.
LAST_DIFFERENT_PIXELS = 5
# The first orange thumbnail is searched for among this many thumbnails.
STRAY = 21
# A part of a thumbnail is scaled to a square before it is compared with orange: the square's side in pixels, and how
# many of its pixels may differ.
ORANGE_SIDE = 200
ORANGE_DIFFERENT_PIXELS = 10_000
# A pixel is white, and not counted, if each of its colours is at least this.
WHITE = 250
# A thumbnail that is narrower consists only of its edges, where changes do not count.
LEAST_PIXELS = 51
# The search for the first change ignores the middle of a thumbnail: this share of its width and height, in percent. It
# is the value that Browsertime passes to the script as `--renderignore`.
IGNORED_PERCENT = 5


@dataclass(frozen=True)
class VisualMetrics:
    """Times in ms from navigation start, and Speed Index (ms), as Browsertime's own script computes them.

    `progress` is the visual completeness over time, in the script's notation (see `visually_complete`).
    """

    fvc: float
    lvc: float
    vc85: float
    si: float
    progress: str = ""


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


class Thumbnails:
    """Takes the thumbnails of a film, one after another (`films.decoding.decode`).

    It stores the `numbers` and the `histograms` of the thumbnails from the page's first change on. It also keeps the
    picture of the blank page, and the last pictures, up to `last_bytes`, since the end of the changes is searched
    backwards.
    """

    def __init__(self, film: Path, log: FilmLog, last_bytes: int) -> None:
        self._film, self._log = film, log
        self._last_bytes = last_bytes
        self._count = 0
        # The first thumbnails, among which the first orange one is searched for; None when this search is over.
        self._stray: list[Pixels] | None = []
        self._blank: Pixels | None = None
        self._is_rendered = self._is_changing = False
        self._last = deque[Pixels]()
        # Both lists have an entry for the blank page, and one for each thumbnail from the first change on.
        self.numbers: list[int] = []
        self.histograms: list[NDArray[np.int32]] = []
        self.is_too_narrow = False

    def add(self, picture: Pixels) -> None:
        """Take the next thumbnail of the film, `picture`."""
        self._last.append(picture)
        if len(self._last) > max(1, self._last_bytes // picture.nbytes):
            self._last.popleft()
        self._count += 1
        if min(picture.shape[:2]) < LEAST_PIXELS:
            self.is_too_narrow = True
        elif self._stray is None:
            self._look(self._count - 1, picture)
        else:
            self._stray.append(picture)
            if _is_orange(picture):
                self._stray = None  # nothing before the first orange counts (`remove_frames_before_orange`)
            elif self._count == STRAY:
                self._look_at_stray()

    def end(self) -> int:
        """How many of `numbers` count. Thumbnails at the end do not count if they are orange, or show the same as an
        earlier one.

        This must be called after the last thumbnail. Raises EyelevelError.
        """
        self._look_at_stray()
        is_orange = self._tested(_is_orange)
        end = len(self.numbers)
        while end > 1 and is_orange(end - 1):
            end -= 1
        # The second pass of `eliminate_duplicate_frames`.
        if end > 2:
            seen = _page(last := self._picture(end - 1))
            is_last = self._tested(lambda picture: _is_like_last(seen.of(last), seen.of(picture)))
            while end > 1 and is_last(end - 2):
                end -= 1
        return end

    def _look_at_stray(self) -> None:
        stray, self._stray = self._stray or [], None
        for number, picture in enumerate(stray):
            self._look(number, picture)

    def _look(self, number: int, picture: Pixels) -> None:
        if self._blank is None:
            if _is_orange(picture):
                return  # `remove_orange_frames`
            self._blank = picture
        elif not self._is_changing:
            # Thumbnails after the blank page are left out as long as they look like it, or are orange
            # (`find_render_start`).
            self._is_rendered = self._is_rendered or (_is_render(self._blank, picture) and not _is_orange(picture))
            # They are also left out as long as the first pass of `eliminate_duplicate_frames` finds no difference from
            # the blank page.
            seen = _page(self._blank)
            is_change = self._is_rendered and _different(seen.of(self._blank), seen.of(picture), NOISE).any()
            self._is_changing = bool(is_change)
            if not is_change:
                return
        self.numbers.append(number)
        self.histograms.append(_histogram(picture))

    def _tested(self, test: Callable[[Pixels], bool]) -> Callable[[int], bool]:
        """A function that returns the result of `test` for the picture of the thumbnail at a place in `numbers`."""
        results: list[bool] = []

        def result(place: int) -> bool:
            if (picture := self._picture_in_memory(place)) is not None:
                return test(picture)
            if not results:
                decode(self._film, self._log, {"thumbnails": lambda picture: results.append(test(picture))})
            return results[self.numbers[place]]

        return result

    def _picture(self, place: int) -> Pixels:
        """The picture of the thumbnail at `place` in `numbers`. Raises EyelevelError."""
        if (picture := self._picture_in_memory(place)) is not None:
            return picture
        places, pictures = itertools.count(), list[Pixels]()

        def add(picture: Pixels) -> None:
            if next(places) == self.numbers[place]:
                pictures.append(picture)

        decode(self._film, self._log, {"thumbnails": add})
        return pictures[0]

    def _picture_in_memory(self, place: int) -> Pixels | None:
        if place == 0:
            return self._blank
        position = self.numbers[place] - (self._count - len(self._last))
        return self._last[position] if position >= 0 else None


def visual_metrics(thumbnails: Thumbnails, times_ms: Sequence[float]) -> VisualMetrics:
    """The visual metrics of a film. `times_ms`: when its thumbnails were on the screen, from navigation start. Raises
    EyelevelError when the film shows only orange, or is too narrow for a page."""
    if thumbnails.is_too_narrow:
        raise EyelevelError("no visual metrics: the film is too narrow for a page")
    end = thumbnails.end()
    if not end:
        raise EyelevelError("no visual metrics: the film shows only orange")
    progress = _progress(thumbnails.histograms[:end])
    # The first of `numbers` is the blank page. It counts from navigation start on.
    at_ms = [0, *(math.floor(times_ms[number]) for number in thumbnails.numbers[1:end])]
    steps = list(zip(at_ms, progress, strict=True))
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


def _is_render(blank: Pixels, picture: Pixels) -> bool:
    """Whether `picture` differs from the `blank` page in a part where changes count (`find_render_start`)."""
    height, width = blank.shape[:2]
    seen = Region(max(width - 10, 1), max(height - 10 - 24, 1), 0, 10)
    ignored = Region(width * IGNORED_PERCENT // 100, height * IGNORED_PERCENT // 100)
    x, y = int(width / 2 - ignored.width / 2), int(height / 2 - ignored.height / 2)
    counts = np.ones((height, width), dtype=bool)
    counts[y : y + ignored.height, x : x + ignored.width] = False
    return bool((_different(seen.of(blank), seen.of(picture), NOISE) & seen.of(counts)).any())


def _is_like_last(last: Pixels, picture: Pixels) -> bool:
    """Whether `picture` shows the same as the `last` one; both were cut to the part in which changes count."""
    return int(np.count_nonzero(_different(last, picture, MORE_NOISE))) <= LAST_DIFFERENT_PIXELS


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


def _histogram(picture: Pixels) -> NDArray[np.int32]:
    """For each colour, the number of pixels with each of its values, without white pixels
    (`calculate_image_histogram`)."""
    pixels = picture[(picture < WHITE).any(axis=2)]
    return np.array([np.bincount(values, minlength=256) for values in pixels.T], dtype=np.int32)


def _progress(histograms: Sequence[NDArray[np.int32]]) -> list[int]:
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
