"""The log of a film, as `film-recorder` writes it: each change of the screen, with its times and the pixels there.

`films/recorder/README.md` has the format. This module reads all of a log except the pixels; `film-recorder stream`
makes pictures of those.
"""

import json
import os
import struct
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import IO

from base.bounded import open_regular
from base.errors import EyelevelError

MAGIC = b"EYEFILM1"
# Width and height; the start of the recording by the monotonic clock and by the clock of the day (µs).
HEAD = struct.Struct("<8sHHIQQ")
# The times of the first and the last drawing (µs), the number of drawings, the changed box, and its bytes in the log.
RECORD = struct.Struct("<QQIHHHHI")
NO_BOX = (0, 0, 0, 0)
# A log may have at most this many changes: those of eleven minutes of a page that never stops moving. It takes as long
# to decode a change as to decode a whole picture, however small the change is in the log.
MOST_CHANGES = 20_000
COUNTS_BYTES = 1 << 12


@dataclass(frozen=True)
class Change:
    """A change of the screen: when the first and the last of its `drawings` were drawn (µs, monotonic clock)."""

    first_us: int
    last_us: int
    drawings: int


@dataclass(frozen=True)
class FilmLog:
    """A film's size in pixels, its beginning by both clocks (µs), its end (µs), its `changes`, and the numbers that the
    recorder counted (`films/recorder/README.md`). The first change is the screen when the film began."""

    width: int
    height: int
    began_us: int
    began_epoch_us: int
    ended_us: int
    changes: tuple[Change, ...]
    counts: Mapping[str, float]

    @cached_property
    def times_us(self) -> tuple[int, ...]:
        """The time of each change (µs, monotonic clock): that of its last drawing. Each time is later than the one
        before, as in a film that other programs play, by 1 µs if need be."""
        return tuple(accumulate((change.last_us for change in self.changes), lambda last, us: max(us, last + 1)))

    def monotonic_us(self, epoch_ms: float) -> int:
        """The time `epoch_ms` (ms since 1970), such as a page's `performance.timeOrigin`, in µs of the monotonic
        clock."""
        return round(1000 * epoch_ms) - self.began_epoch_us + self.began_us

    def change_at(self, at_us: float) -> int:
        """The number of the change that the screen showed at `at_us`; for a time before the film, that of the first."""
        return max(bisect_right(self.times_us, at_us) - 1, 0)


def read_log(path: Path) -> FilmLog:
    """The log in the file `path`, without its pixels. Raises EyelevelError when the log is damaged or incomplete."""
    try:
        with os.fdopen(open_regular(path), "rb") as file:
            return _read(file)
    except FileNotFoundError:
        raise EyelevelError(f"there is no film {path}") from None
    except (OSError, ValueError, RecursionError, struct.error) as error:
        raise EyelevelError(f"the film {path} is not whole: {error}") from None


def has_changes(file: IO[bytes], count: int) -> bool:
    """Whether the log in `file`, which may still be being written, has `count` changes."""
    end = file.seek(0, os.SEEK_END)
    file.seek(HEAD.size)
    for _ in range(count):
        if len(header := file.read(RECORD.size)) < RECORD.size:
            return False
        _, _, _, *box, size = RECORD.unpack(header)
        if tuple(box) == NO_BOX or file.seek(size, os.SEEK_CUR) > end:
            return False
    return True


def _read(file: IO[bytes]) -> FilmLog:
    """Raises ValueError or struct.error when the log is damaged or incomplete."""
    magic, width, height, _, began_us, began_epoch_us = HEAD.unpack(file.read(HEAD.size))
    if magic != MAGIC or not width or not height:
        raise ValueError("it is not a log of film-recorder")
    changes: list[Change] = []
    while True:
        first_us, last_us, drawings, *box, size = RECORD.unpack(file.read(RECORD.size))
        if not began_us <= first_us <= last_us or (changes and last_us < changes[-1].last_us):
            raise ValueError(f"change {len(changes)} is before the previous one")
        if tuple(box) == NO_BOX:
            break
        changes.append(Change(first_us, last_us, drawings))
        if len(changes) > MOST_CHANGES:
            raise ValueError(f"it has more than {MOST_CHANGES} changes")
        file.seek(size, os.SEEK_CUR)
    if not changes or size > COUNTS_BYTES:
        raise ValueError("it has no change, or no counts")
    counts = json.loads(file.read(size))
    if not isinstance(counts, dict) or not all(isinstance(count, int | float) for count in counts.values()):
        raise ValueError("its counts are no numbers")
    if "missed_pixels" not in counts:
        raise ValueError("it does not say how many pixels it lacks")
    return FilmLog(width, height, began_us, began_epoch_us, last_us, tuple(changes), counts)
