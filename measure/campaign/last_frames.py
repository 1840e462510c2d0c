"""The digests of the last frames of a campaign's attempts, from their pictures where these are there."""

from collections.abc import Iterable
from pathlib import Path

from dataset.last_frames import digest_of, read_digests
from measure.run.films import read_last_frame


def all_digests(campaign: Path, folders: Iterable[str]) -> dict[str, str]:
    """Folder → digest of each attempt in `folders` whose picture, or digest, is there. Raises EyelevelError."""
    kept, digests = read_digests(campaign), {}
    for folder in folders:
        frame = read_last_frame(campaign / folder)
        if digest := kept.get(folder) if frame is None else digest_of(frame):
            digests[folder] = digest
    return digests
