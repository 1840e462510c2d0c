"""Digests of last frames, which replace the pictures of attempts whose evidence is elsewhere.

A campaign that is resumed from its package does not have the pictures of its earlier runs: packages have no pictures,
since these show other people's pages. Loads of the same page mostly end with the same picture, byte for byte. So a
later picture that has the digest of an earlier run is that run's picture, too (`measure.campaign.outcomes`). A digest
is computed from the picture's blocks instead of the file, since compressed forms may differ between machines.
"""

import csv
import io
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from base.bounded import read_regular
from base.errors import EyelevelError
from base.files import sync, write_atomically
from dataset.reading import read_text
from dataset.run_files import LAST
from dataset.table import LAST_FRAMES

COLUMNS = ("folder", "sha256")
# The largest number of blocks that is read: that of a screen of 16,000 by 16,000 pixels.
MOST_BLOCKS = 4_000_000
FILE_BYTES = 16 << 20


def write_last_frame(blocks: NDArray[np.uint8], folder: Path) -> None:
    """Store the blocks of a film's last frame in `folder`."""
    Image.fromarray(blocks).save(folder / LAST)
    sync(folder / LAST)


def read_last_frame(folder: Path) -> NDArray[np.uint8] | None:
    """The blocks that `write_last_frame` stored (height x width x RGB); None if the file is missing or broken. The file
    may come from a stranger."""
    try:
        # Pillow would pass some other formats to external programs, such as PostScript to Ghostscript.
        with Image.open(io.BytesIO(read_regular(folder / LAST, FILE_BYTES)), formats=("PNG",)) as picture:
            return np.asarray(picture.convert("RGB")) if picture.width * picture.height <= MOST_BLOCKS else None
    except Exception:  # Pillow raises different exceptions for each kind of broken picture
        return None


def digest_of(frame: NDArray[np.uint8]) -> str:
    """The SHA-256 of a last frame: of its height, its width and its bytes."""
    return sha256(f"{frame.shape[0]} {frame.shape[1]}\n".encode() + frame.tobytes()).hexdigest()


def read_digests(campaign: Path) -> dict[str, str]:
    """Folder of an attempt → digest, from the campaign's folder; empty if it has none. Raises EyelevelError."""
    path = campaign / LAST_FRAMES
    try:
        rows = list(csv.DictReader(io.StringIO(read_text(path))))
        return {row["folder"]: row["sha256"] for row in rows}
    except FileNotFoundError:
        return {}
    except (KeyError, ValueError, csv.Error) as error:
        raise EyelevelError(f"{path} is broken: {error!r}") from None


def write_digests(into: Path, digests: Mapping[str, str]) -> None:
    """Write `digests` to the folder `into`; writes no file if there are none."""
    if not digests:
        return
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(digests.items())
    write_atomically(into / LAST_FRAMES, text.getvalue())


def all_digests(campaign: Path, folders: Iterable[str]) -> dict[str, str]:
    """Folder → digest of each attempt in `folders` that has a picture or a digest. Raises EyelevelError."""
    kept, digests = read_digests(campaign), {}
    for folder in folders:
        frame = read_last_frame(campaign / folder)
        if digest := kept.get(folder) if frame is None else digest_of(frame):
            digests[folder] = digest
    return digests
