"""How the runs of a campaign look in the end, in memory: after each block they are compared with all others of their
site and network (`measure.campaign.expectations`).

The same page loaded again mostly ends with the same picture, byte for byte, and such pictures are kept once. Runs that
were made on another machine may be known by their digests alone (`dataset.last_frames`): such a run has the picture
that a run here has with the same digest, as soon as there is one.
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

# The bytes of pictures in memory, each of which takes 49 kB. With more, the rest is read from the disk each time.
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
        # The digests that runs from elsewhere have, each with its picture if one was read here.
        self._elsewhere: dict[str, LastFrame] = dict.fromkeys(self._digests.values())

    def of(self, row: Row) -> RunOutcome:
        """How the attempt in `row`, which is not made again, looked."""
        return RunOutcome(row.requests, row.missed, row.exchanges, self._last_frame(row.folder))

    def look_at(self, rows: Iterable[Row]) -> None:
        """Read the pictures of `rows`, so that runs from elsewhere that looked alike have them, too."""
        if self._digests:
            for row in rows:
                self._last_frame(row.folder)

    def _last_frame(self, folder: str) -> LastFrame:
        if folder not in self._frames:
            frame = self._read(self._folder / folder)
            if frame is None and folder in self._digests:
                # Which may be known later.
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
