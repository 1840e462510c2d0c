"""How the runs of a campaign look in the end, in memory: after each block they are compared with all others of their
site and network (`measure.norms`).

The same page loaded again mostly ends with the same picture, byte for byte, and such pictures are kept once.
"""

from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from measure.norms import RunAppearance
from measure.run.films import LAST, read_last_frame
from measure.table import Row

# Of pictures, each of which takes 49 kB. With more, the rest is read from the disk each time.
MOST_BYTES = 256_000_000

LastFrame = NDArray[np.uint8] | None


class Appearances:
    """What of the attempts of the campaign in `folder` is compared with others."""

    def __init__(self, folder: Path, most_bytes: int = MOST_BYTES) -> None:
        self._folder = folder
        self._spare_bytes = most_bytes
        self._frames: dict[str, LastFrame] = {}
        self._pictures: dict[bytes, LastFrame] = {}

    def of(self, row: Row) -> RunAppearance:
        """How the attempt in `row`, which is not made again, looked."""
        return RunAppearance(row.requests, row.missed, row.exchanges, self._last_frame(row.folder))

    def _last_frame(self, folder: str) -> LastFrame:
        if folder not in self._frames:
            frame = self._read(self._folder / folder)
            if self._spare_bytes <= 0:
                return frame
            self._frames[folder] = frame
        return self._frames[folder]

    def _read(self, folder: Path) -> LastFrame:
        try:
            digest = sha256((folder / LAST).read_bytes()).digest()
        except OSError:
            return None
        if digest not in self._pictures:
            frame = read_last_frame(folder)
            if self._spare_bytes <= 0:
                return frame
            self._spare_bytes -= frame.nbytes if frame is not None else 0
            self._pictures[digest] = frame
        return self._pictures[digest]
