"""The strip of a film: pictures of it side by side, from the navigation to the last change."""

import itertools
import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from base.errors import EyelevelError
from base.files import sync
from base.places import tool
from base.processes import last_line_of
from dataset.run_files import STRIP
from films.decoding import Pixels, decode
from films.log import FilmLog

STRIP_PICTURES = 8


class StripPictures:
    """Pictures of a film's changes for its strip (`films.decoding.decode`), at most `most_bytes` of them. If it has
    more, those in the strip are decoded once more."""

    def __init__(self, film: Path, log: FilmLog, most_bytes: int) -> None:
        self._film, self._log = film, log
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

        decode(self._film, self._log, {"strip": add})
        return [pictures[change] for change in changes]


def keep_strip(log: FilmLog, pictures: StripPictures, zero_us: float, lvc_ms: float, folder: Path) -> None:
    """Store a strip of a film from `zero_us` (monotonic clock) to its last visual change. Raises EyelevelError, and
    OSError where it cannot be written."""
    # Metrics are rounded down to ms, and the last picture is to have the final look.
    step_us = 1000 * (lvc_ms + 1) / (STRIP_PICTURES - 1)
    strip = pictures.of([log.change_at(zero_us + step * step_us) for step in range(STRIP_PICTURES)])
    # Side by side: the planes (Y, Cb, Cr) first, then rows.
    planes = np.concatenate(strip, axis=2)
    command: list[str | Path] = [tool("ffmpeg"), "-v", "error", "-f", "rawvideo", "-pix_fmt", "yuvj444p"]
    command += ["-s", f"{planes.shape[2]}x{planes.shape[1]}", "-i", "-", "-q:v", "5"]
    # Not to the file: a full disk must not look like a film that is broken.
    command += ["-c:v", "mjpeg", "-f", "image2pipe", "-"]
    done = subprocess.run(command, input=planes.tobytes(), capture_output=True, check=False)
    if done.returncode or not done.stdout:
        raise EyelevelError(f"no film strip in {folder}: {last_line_of(done.stderr.decode(errors='replace'))}")
    (folder / STRIP).write_bytes(done.stdout)
    sync(folder / STRIP)
