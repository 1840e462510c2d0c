"""The strip of a film: pictures of it side by side, from the navigation to the last change."""

import itertools
import math
import subprocess
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import numpy as np

from base.errors import EyelevelError
from base.files import sync
from base.places import tool
from base.processes import last_line_of
from dataset.run_files import STRIP
from films.decoding import STRIP_WIDTH_PIXELS, FilmTimes, Pixels, decode
from films.frames import FilmStart
from tuning.defaults import FRAMERATE

STRIP_PICTURES = 8
# In Y, Cb and Cr of full range (JFIF).
BLACK = (0, 128, 128)


class StripPictures:
    """Pictures of a film's changes for its strip (`films.decoding.decode`), at most `most_bytes` of them. If it has
    more, those in the strip are decoded once more."""

    def __init__(self, film: Path, most_bytes: int) -> None:
        self._film = film
        self._most_bytes = most_bytes
        self._pictures: list[Pixels] | None = []

    def add(self, picture: Pixels) -> None:
        """Keep the next, or none any more."""
        if self._pictures is not None:
            self._pictures.append(picture)
            if len(self._pictures) * picture.nbytes > self._most_bytes:
                self._pictures = None

    def of(self, changes: Sequence[int]) -> list[Pixels]:
        """The pictures of the changes with these numbers. Raises EyelevelError."""
        if self._pictures is not None:
            return [self._pictures[change] for change in changes]
        numbers, pictures = itertools.count(), dict[int, Pixels]()

        def add(picture: Pixels) -> None:
            if (number := next(numbers)) in changes:
                pictures[number] = picture

        decode(self._film, {"strip": add})
        return [pictures[change] for change in changes]


def keep_strip(times: FilmTimes, pictures: StripPictures, start: FilmStart, lvc_ms: float, folder: Path) -> None:
    """Store a strip of a film, which begins as `start` says and changes last at `lvc_ms`. Raises EyelevelError, and
    OSError where it cannot be written."""
    # FFmpeg sometimes takes the screen's rate for 29.97 frames a second, and on a busy machine for another one.
    zero_s = Fraction(f"{(start.stray_frames + start.orange_frames) / round(times.frames_per_s):.3f}")
    # Steps are longer by a millionth, so that rounding does not leave the final look out of the last picture.
    step_s = Fraction(f"{max(lvc_ms / 1000 / (STRIP_PICTURES - 1), 1 / FRAMERATE) * (1 + 1e-6):.6f}")
    frames = frames_at_steps(times, zero_s, step_s)
    strip = pictures.of([bisect_right(times.changes, frame) - 1 for frame in frames])
    # Side by side: the planes (Y, Cb, Cr) first, then rows. Where the film is shorter it is black.
    planes = np.concatenate(strip, axis=2)
    missing_columns = STRIP_PICTURES * STRIP_WIDTH_PIXELS - planes.shape[2]
    black = np.broadcast_to(np.array(BLACK, dtype=np.uint8)[:, None, None], (*planes.shape[:2], missing_columns))
    planes = np.concatenate([planes, black], axis=2)
    command: list[str | Path] = [tool("ffmpeg"), "-v", "error", "-f", "rawvideo", "-pix_fmt", "yuvj444p"]
    command += ["-s", f"{planes.shape[2]}x{planes.shape[1]}", "-i", "-", "-q:v", "5"]
    # Not to the file: a full disk must not look like a film that is broken.
    command += ["-c:v", "mjpeg", "-f", "image2pipe", "-"]
    done = subprocess.run(command, input=planes.tobytes(), capture_output=True, check=False)
    if done.returncode or not done.stdout:
        raise EyelevelError(f"no film strip in {folder}: {last_line_of(done.stderr.decode(errors='replace'))}")
    (folder / STRIP).write_bytes(done.stdout)
    sync(folder / STRIP)


def frames_at_steps(film: FilmTimes, zero_s: Fraction, step_s: Fraction) -> list[int]:
    """The numbers of the frames in a strip: at steps of `step_s` after `zero_s`, from the first frame on that does not
    begin before that; fewer at the film's end."""
    zero = round(zero_s / film.time_base_s)
    # For each frame, the first step at which it can be seen.
    steps = [math.ceil((time - zero) * film.time_base_s / step_s) for time in film.times]
    first = min(bisect_left(film.times, zero), len(steps) - 1)
    film_end_s = (film.times[-1] - zero) * film.time_base_s + 1 / film.frames_per_s
    end = min(steps[first] + STRIP_PICTURES, max(steps[first] + 1, math.ceil(film_end_s / step_s)))
    return [bisect_right(steps, step) - 1 for step in range(steps[first], end)]
