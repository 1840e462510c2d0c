"""The look of a film: how it begins, and its last frame; and whether pictures are alike.

A film begins with some frames of orange; with the navigation the orange makes place for a blank page, and
that frame is the film's zero (up to two frames of the screen, 33 ms, before the page's own navigation
start; the same for all).
"""

import io
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from base.errors import EyelevelError
from base.places import tool
from base.processes import last_line_of
from films.decoding import BLOCK, FilmTimes, Pixels

# Browsertime's orange, and how far a colour may be off it (the film is lossless, the screen has 24 bits).
ORANGE = np.array([0xDE, 0x64, 0x0D], dtype=np.int16)
TOLERANCE = 4
ORANGE_SHARE = 0.99
# The orange lasts for about a fifth of a second; a film that still shows it after this many frames is broken.
START_FRAMES = 150
# How far back from its end a film is decoded for its last frame; several frames at any rate it has.
LAST_S = 0.5
# How far apart the colours (0 to 255) of two pictures' blocks may be unseen.
VISIBLE = 8


@dataclass(frozen=True)
class FilmStart:
    """How a film begins: frames before the orange, frames of orange, and how the frame after those looks."""

    stray_frames: int
    orange_frames: int
    blank_after: bool


class FilmLooks:
    """How a film looks in its beginning, to the end of the orange, and at its end; from the blocks of its changes
    (`films.decoding.decode`), of which only the last are kept, as `last`."""

    def __init__(self) -> None:
        self.last: Pixels | None = None
        # Whether each change is orange.
        self.is_orange: list[bool] = []
        # Whether the change after the orange, which is the last of these, is blank.
        self.is_blank_after: bool | None = None

    def add(self, blocks_of_change: Pixels) -> None:
        """Look at the next change."""
        self.last = blocks_of_change
        if self.is_blank_after is None:
            after_orange = bool(self.is_orange) and self.is_orange[-1]
            self.is_orange.append(is_orange(blocks_of_change))
            if after_orange and not self.is_orange[-1]:
                self.is_blank_after = is_blank(blocks_of_change)


def film_start(times: FilmTimes, looks: FilmLooks) -> FilmStart:
    """How a film begins. A frame that is missing in it counts as like the one before."""
    end = min(times.position(-1) + 1, START_FRAMES)
    orange_begins = None
    for frame, orange in zip(times.changes, looks.is_orange, strict=False):
        position = times.position(frame)
        if position >= end:
            break
        if orange:
            orange_begins = position if orange_begins is None else orange_begins
        elif orange_begins is not None:
            return FilmStart(orange_begins, position - orange_begins, blank_after=bool(looks.is_blank_after))
    stray = end if orange_begins is None else orange_begins
    return FilmStart(stray, end - stray, blank_after=False)


def last_frame(film: Path) -> Pixels:
    """The last frame of `film`, in which the page has its final look. Raises EyelevelError."""
    command: list[str | Path] = [tool("ffmpeg"), "-v", "error", "-nostdin", "-sseof", f"-{LAST_S:g}"]
    command += ["-f", "mp4", "-i", film, "-vf", "reverse", "-frames:v", "1", "-f", "image2pipe", "-c:v", "ppm", "-"]
    done = subprocess.run(command, capture_output=True, check=False)
    try:
        with Image.open(io.BytesIO(done.stdout)) as picture:
            return np.asarray(picture)
    except OSError:
        last = last_line_of(done.stderr.decode(errors="replace"), "it has no last frame")
        raise EyelevelError(f"{film} cannot be decoded: {last}") from None


def unlike(one: Pixels, other: Pixels) -> float:
    """The share of two pictures (0 to 1) in which a person could see a difference.

    That is the share of 8 by 8 pixel blocks whose mean colours differ by more than `VISIBLE`; pictures of
    different sizes differ everywhere.
    """
    if one.shape != other.shape:
        return 1.0
    return unlike_blocks(blocks(one), blocks(other))


def unlike_blocks(one: NDArray[Any], other: NDArray[Any]) -> float:
    """The share of blocks that differ visibly, from the blocks' mean colours of two pictures (see `blocks`)."""
    if one.shape != other.shape:
        return 1.0
    # Differences of bytes need no more than 16 bits.
    kind = np.int16 if one.dtype == other.dtype == np.uint8 else np.float64
    is_visible = np.abs(one.astype(kind) - other.astype(kind)) > VISIBLE
    # The colours one by one: numpy is slow along an axis of three.
    return float((is_visible[..., 0] | is_visible[..., 1] | is_visible[..., 2]).mean())


def blocks(frame: Pixels) -> NDArray[np.float64]:
    """The mean colour of each block of `frame`; what is left over at its right and bottom edge does not count."""
    height, width = (size // BLOCK * BLOCK for size in frame.shape[:2])
    cut = frame[:height, :width].reshape(height // BLOCK, BLOCK, width // BLOCK, BLOCK, 3)
    return np.asarray(cut.mean(axis=(1, 3)))


def is_orange(frame: Pixels) -> bool:
    """Whether `frame` is Browsertime's orange, but for a blended last row or column of a scaled page."""
    close = (np.abs(frame.astype(np.int16) - ORANGE) <= TOLERANCE).all(axis=2)
    return bool(close.mean() > ORANGE_SHARE)


def is_blank(frame: Pixels) -> bool:
    """Whether all of `frame` has one colour: nothing left of the orange, nothing yet of the page."""
    pixels = frame.reshape(-1, 3)
    return bool((pixels.max(axis=0) - pixels.min(axis=0) <= TOLERANCE).all())
