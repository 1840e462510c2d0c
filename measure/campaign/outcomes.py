"""The results of a campaign's runs that expectations compare, in memory: after each block, its runs are compared with
all others of their site and network (`measure.campaign.expectations`).

Loads of the same page mostly end with the same picture, byte for byte; each picture is kept in memory once. Runs that
were made on another machine may be known only by the digests of their pictures (`dataset.last_frames`). Such a run gets
its picture as soon as a run here has one with the same digest.
"""

from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from base.bounded import read_regular
from dataset.last_frames import FILE_BYTES, digest_of, read_digests, read_last_frame
from dataset.run_files import LAST
from dataset.table import Row
from measure.campaign.expectations import RunOutcome

# The memory for pictures, each of which takes 49 kB. Beyond it, pictures are read from the disk each time.
MOST_BYTES = 256_000_000

LastFrame = NDArray[np.uint8] | None


class RunOutcomes:
    """The outcomes of the attempts of the campaign in `folder`, for comparison with others."""

    def __init__(self, folder: Path, most_bytes: int = MOST_BYTES) -> None:
        """Raises EyelevelError when the digests that the campaign keeps are broken."""
        self._folder = folder
        self._spare_bytes = most_bytes
        self._frames: dict[str, LastFrame] = {}
        self._pictures: dict[bytes, LastFrame] = {}
        self._digests = read_digests(folder)
        # Digest of a picture of runs from elsewhere → the picture, once one was read here.
        self._elsewhere: dict[str, LastFrame] = dict.fromkeys(self._digests.values())

    def of(self, row: Row) -> RunOutcome:
        """The outcome of the attempt in `row`, which must not change any more."""
        return RunOutcome(row.requests, row.missed, row.exchanges, self._last_frame(row.folder))

    def look_at(self, rows: Iterable[Row]) -> None:
        """Read the pictures of `rows`, so that runs from elsewhere with the same digests have their pictures, too."""
        if self._digests:
            for row in rows:
                self._last_frame(row.folder)

    def _last_frame(self, folder: str) -> LastFrame:
        if folder not in self._frames:
            frame = self._read(self._folder / folder)
            if frame is None and folder in self._digests:
                # The picture may become known later.
                return self._elsewhere[self._digests[folder]]
            if self._spare_bytes <= 0:
                return frame
            self._frames[folder] = frame
        return self._frames[folder]

    def _read(self, folder: Path) -> LastFrame:
        try:
            digest = sha256(read_regular(folder / LAST, FILE_BYTES)).digest()
        except OSError:
            return None
        if digest not in self._pictures:
            frame = read_last_frame(folder)
            self._keep_for_others(frame)
            if self._spare_bytes <= 0:
                return frame
            self._spare_bytes -= frame.nbytes if frame is not None else 0
            self._pictures[digest] = frame
        return self._pictures[digest]

    def _keep_for_others(self, frame: LastFrame) -> None:
        if frame is not None and self._digests and (digest := digest_of(frame)) in self._elsewhere:
            self._elsewhere[digest] = frame
