"""Reading files that anybody may have made: they take no more memory than they may, and no file makes us wait.

Standard library only.
"""

import json
import os
import re
import stat
from pathlib import Path
from typing import Any

from record.http1 import BLANK_LINE, MalformedMessage, divided

# In which the header fields of most messages end.
USUAL_HEAD_BYTES = 1 << 12
# A text, or the beginning of an object, of a list or of a further value in one. Without escapes.
JSON_TOKEN = re.compile(rb'"[^"]*"?|[\[{,]')
# Empty lists in a list take twenty times what they have in the file, empty objects more.
JSON_VALUES = 3_000_000


def open_regular(path: Path, *, follow: bool = False) -> int:
    """A descriptor to read the file `path`. Raises OSError when it is no regular file, such as a pipe or a device.

    A symbolic link is refused, unless `follow`: only a link that the user has named himself may lead anywhere.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW))
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{path.name} is no regular file")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def read_regular(path: Path, limit_bytes: int, *, follow: bool = False) -> bytes:
    """The content of the file `path`, whatever size its file system tells.

    Raises MalformedMessage when it is longer than `limit_bytes`, and OSError as `open_regular` does.
    """
    with os.fdopen(open_regular(path, follow=follow), "rb") as file:
        expected_bytes = os.fstat(file.fileno()).st_size
        content = file.read(expected_bytes + 1) if expected_bytes <= limit_bytes else None
        if content and len(content) > expected_bytes:  # some file systems tell no size
            content += file.read(limit_bytes)
    if content is None or len(content) > limit_bytes:
        raise MalformedMessage(f"it is longer than {limit_bytes >> 20} MiB")
    return content


def read_message(path: Path, limit_bytes: int, *, follow: bool = False) -> tuple[bytes, bytes]:
    """The head of the HTTP message in the file `path`, without the blank line, and its body, each read by itself: in
    a process that keeps many bodies, whole messages would leave holes of their size between these.

    Raises MalformedMessage when there is no blank line, or the file is longer than `limit_bytes`, and OSError as
    `open_regular` does.
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
    """The head alone; raises what `read_message` does."""
    descriptor = open_regular(path)
    try:
        if head := _usual_head(descriptor, os.fstat(descriptor).st_size, limit_bytes):
            return head
    finally:
        os.close(descriptor)
    return divided(read_regular(path, limit_bytes))[0]


def _usual_head(descriptor: int, size: int, limit_bytes: int) -> bytes | None:
    """The head of the message in a file of this `size`; None for one that is out of the ordinary: it is long, or the
    file too long, or its file system tells no size."""
    head, blank_line, _ = os.pread(descriptor, USUAL_HEAD_BYTES, 0).partition(BLANK_LINE)
    is_usual = blank_line and size <= limit_bytes and not os.pread(descriptor, 1, size)
    return head if is_usual else None


def parse_json(document: bytes) -> Any:
    """The value that `document` is. Raises ValueError when it is no JSON, or would take a lot more memory than it has
    bytes."""
    without_escapes = document.replace(rb"\\", b"").replace(rb"\"", b"")
    values = 0
    for token in JSON_TOKEN.finditer(without_escapes):
        values += without_escapes[token.start()] != ord('"')
        if values > JSON_VALUES:
            raise ValueError(f"it holds more than {JSON_VALUES:,} values")
    try:
        return json.loads(document)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
