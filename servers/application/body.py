"""The body of a recorded response, which stays in its file until it is requested.

So all replays of a site share one copy of its bodies in memory: that of the kernel's file cache. Standard library only.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from base.bounded import open_regular

# A piece is sent while the next one is read. A body of 12 MB takes 2 ms from memory; from its file, it takes longer if
# the pieces are shorter than this.
PIECE_BYTES = 1 << 17


class BodyInFile:
    """The `size_bytes` of a file from `begin` on. The file stays open, so it may be replaced meanwhile, for example if
    its site is imported again."""

    __slots__ = ("_begin", "_descriptor", "_end")

    def __init__(self, path: Path, begin: int, size_bytes: int) -> None:
        """Raises OSError when `path`, which may be a link, leads to no regular file."""
        self._descriptor = open_regular(path, follow=True)
        self._begin = begin
        self._end = begin + size_bytes

    def __del__(self) -> None:
        if hasattr(self, "_descriptor"):
            os.close(self._descriptor)

    @property
    def descriptor(self) -> int:
        """The descriptor of the open file."""
        return self._descriptor

    def pieces(self) -> Iterator[bytes]:
        """The body in pieces. Raises OSError when not all of it can be read."""
        at = self._begin
        while at < self._end:
            piece = os.pread(self._descriptor, min(PIECE_BYTES, self._end - at), at)
            if not piece:
                raise OSError("the file of a response became shorter")
            at += len(piece)
            yield piece
