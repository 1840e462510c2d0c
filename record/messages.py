"""Reads recorded HTTP messages from files that may come from anybody. Standard library only."""

import os
from pathlib import Path

from base.bounded import open_regular, read_regular
from record.http1 import BLANK_LINE, divided

# The header fields of most messages end within this length.
USUAL_HEAD_BYTES = 1 << 12


def read_message(path: Path, limit_bytes: int, *, follow: bool = False) -> tuple[bytes, bytes]:
    """The head of the HTTP message in the file `path`, without the blank line, and its body. They are read separately:
    in a process that keeps many bodies, reading whole messages would leave holes of their size in memory.

    Raises MalformedMessage when there is no blank line, TooLong when the file is longer than `limit_bytes`, and OSError
    like `open_regular`.
    """
    descriptor = open_regular(path, follow=follow)
    try:
        size = os.fstat(descriptor).st_size
        if head := _usual_head(descriptor, size, limit_bytes):
            begin = len(head) + len(BLANK_LINE)
            return head, os.pread(descriptor, size - begin, begin)
    finally:
        os.close(descriptor)
    return divided(read_regular(path, limit_bytes, follow=follow))


def read_head(path: Path, limit_bytes: int) -> bytes:
    """Only the head; raises like `read_message`."""
    descriptor = open_regular(path)
    try:
        if head := _usual_head(descriptor, os.fstat(descriptor).st_size, limit_bytes):
            return head
    finally:
        os.close(descriptor)
    return divided(read_regular(path, limit_bytes))[0]


def _usual_head(descriptor: int, size: int, limit_bytes: int) -> bytes | None:
    """The head of the message in a file of this `size`. None in unusual cases: the head or the file is too long, or the
    file system does not report its size."""
    head, blank_line, _ = os.pread(descriptor, USUAL_HEAD_BYTES, 0).partition(BLANK_LINE)
    is_usual = blank_line and size <= limit_bytes and not os.pread(descriptor, 1, size)
    return head if is_usual else None
