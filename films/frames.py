"""How a film begins, its last picture, and whether two pictures look alike.

A film begins with orange, which disappears some ms before the navigation starts. So a film that shows orange began in
time. The zero of its times is navigation start itself (`docs/decisions/14-films-by-damage.md`).
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from films.decoding import BLOCK, Pixels
from films.log import FilmLog

# Browsertime's orange, and how much a colour may differ from it (the film is lossless, the screen has 24 bits).
ORANGE = np.array([0xDE, 0x64, 0x0D], dtype=np.int16)
TOLERANCE = 4
ORANGE_SHARE = 0.99
# Nobody sees it if the colours (0 to 255) of a block differ by no more than this between two pictures.
VISIBLE = 8


@dataclass(frozen=True)
class FilmStart:
    """How a film begins: for how long it shows orange (ms), when the orange disappears (ms from navigation start; None
    if it never does), and whether the next picture is blank."""

    orange_ms: float
    blank_ms: float | None
    blank_after: bool


class FilmLooks:
    """How a film looks from its beginning until the orange disappears, and at its end. It gets the blocks of each
    change (`films.decoding.decode`), and keeps only those of the last change, as `last`."""

    def __init__(self) -> None:
        self.last: Pixels | None = None
        # For each change, up to the first one after the orange: whether it is orange.
        self.is_orange: list[bool] = []
        # Whether the first change after the orange is blank; None before it has come.
        self.is_blank_after: bool | None = None

    def add(self, blocks_of_change: Pixels) -> None:
        """Look at the next change."""
        self.last = blocks_of_change
        if self.is_blank_after is None:
            after_orange = bool(self.is_orange) and self.is_orange[-1]
            self.is_orange.append(is_orange(blocks_of_change))
            if after_orange and not self.is_orange[-1]:
                self.is_blank_after = is_blank(blocks_of_change)


def film_start(log: FilmLog, looks: FilmLooks, zero_us: float) -> FilmStart:
    """How a film begins. `zero_us`: when its page was navigated to (monotonic clock)."""
    if True not in looks.is_orange:
        return FilmStart(0.0, None, blank_after=False)
    begins_us = log.times_us[looks.is_orange.index(True)]
    if looks.is_blank_after is None:
        return FilmStart(_ms(log.ended_us - begins_us), None, blank_after=False)
    blank_us = log.times_us[len(looks.is_orange) - 1]
    return FilmStart(_ms(blank_us - begins_us), _ms(blank_us - zero_us), blank_after=looks.is_blank_after)


def _ms(time_us: float) -> float:
    return round(time_us / 1000, 3)


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
    # Compare one colour after the other, since numpy is slow along an axis of length three.
    return float((is_visible[..., 0] | is_visible[..., 1] | is_visible[..., 2]).mean())


def blocks(frame: Pixels) -> NDArray[np.float64]:
    """The mean colour of each block of `frame`. Pixels at the right and bottom edge that fill no block do not count."""
    height, width = (size // BLOCK * BLOCK for size in frame.shape[:2])
    cut = frame[:height, :width].reshape(height // BLOCK, BLOCK, width // BLOCK, BLOCK, 3)
    return np.asarray(cut.mean(axis=(1, 3)))


def is_orange(frame: Pixels) -> bool:
    """Whether `frame` is Browsertime's orange. In a scaled page, the last row or column may be blended."""
    close = (np.abs(frame.astype(np.int16) - ORANGE) <= TOLERANCE).all(axis=2)
    return bool(close.mean() > ORANGE_SHARE)


def is_blank(frame: Pixels) -> bool:
    """Whether all of `frame` has the same colour, so that it shows neither a rest of the orange nor a part of the
    page."""
    pixels = frame.reshape(-1, 3)
    return bool((pixels.max(axis=0) - pixels.min(axis=0) <= TOLERANCE).all())
