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
    """The pictures from which the strip of a film is made, one for each change (`films.decoding.decode`).

    If they take more than `most_bytes`, none is kept; the film is decoded again for those that are in the strip.
    """

    def __init__(self, film: Path, log: FilmLog, most_bytes: int) -> None:
        self._film, self._log = film, log
        self._most_bytes = most_bytes
        self._pictures: list[Pixels] | None = []

    def add(self, picture: Pixels) -> None:
        """Keep the picture of the next change; if that takes too much memory, give up all pictures."""
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
    """Store a strip of a film, from `zero_us` (monotonic clock) to the last visual change (`lvc_ms` later). Raises
    EyelevelError, and OSError when the strip cannot be written."""
    # One ms is added since `lvc_ms` was rounded down, and the strip's last picture must show the final look.
    step_us = 1000 * (lvc_ms + 1) / (STRIP_PICTURES - 1)
    strip = pictures.of([log.change_at(zero_us + step * step_us) for step in range(STRIP_PICTURES)])
    # Put the pictures side by side. The axes of each are the planes (Y, Cb, Cr), rows and columns.
    planes = np.concatenate(strip, axis=2)
    command: list[str | Path] = [tool("ffmpeg"), "-v", "error", "-f", "rawvideo", "-pix_fmt", "yuvj444p"]
    command += ["-s", f"{planes.shape[2]}x{planes.shape[1]}", "-i", "-", "-q:v", "5"]
    # FFmpeg does not write the file itself: otherwise a full disk would look like a damaged film.
    command += ["-c:v", "mjpeg", "-f", "image2pipe", "-"]
    done = subprocess.run(command, input=planes.tobytes(), capture_output=True, check=False)
    if done.returncode or not done.stdout:
        raise EyelevelError(f"no film strip in {folder}: {last_line_of(done.stderr.decode(errors='replace'))}")
    (folder / STRIP).write_bytes(done.stdout)
    sync(folder / STRIP)
