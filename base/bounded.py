"""Reading files that anybody may have made: they take no more memory than they may, and no file makes us wait.

Standard library only.
"""

import json
import os
import re
import stat
import zlib
from pathlib import Path
from typing import Any

# A text, or the beginning of an object, of a list or of a further value in one. Without escapes.
JSON_TOKEN = re.compile(rb'"[^"]*"?|[\[{,]')
# Empty lists in a list take twenty times what they have in the file, empty objects more.
JSON_VALUES = 3_000_000
# The most bytes of a file of JSON, and of what it is when decompressed.
JSON_BYTES = 64 << 20


class TooLong(OSError):
    """A file is longer than it may be."""


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

    Raises TooLong when it is longer than `limit_bytes`, and OSError as `open_regular` does.
    """
    with os.fdopen(open_regular(path, follow=follow), "rb") as file:
        expected_bytes = os.fstat(file.fileno()).st_size
        content = file.read(expected_bytes + 1) if expected_bytes <= limit_bytes else None
        if content and len(content) > expected_bytes:  # some file systems tell no size
            content += file.read(limit_bytes)
    if content is None or len(content) > limit_bytes:
        raise TooLong(f"it is longer than {limit_bytes >> 20} MiB")
    return content


def unpacked(content: bytes, limit_bytes: int) -> bytes:
    """The bytes that gzip (RFC 1952) compressed to `content`. Raises ValueError when it is broken, or they are
    more than `limit_bytes`."""
    unpacking = zlib.decompressobj(zlib.MAX_WBITS | 16)
    try:
        unpacked = unpacking.decompress(content, limit_bytes + 1)
    except zlib.error as error:
        raise ValueError(str(error)) from None
    if len(unpacked) > limit_bytes:
        raise ValueError(f"it is longer than {limit_bytes >> 20} MiB when decompressed")
    if not unpacking.eof:
        raise ValueError("it is truncated")
    if unpacking.unused_data:
        raise ValueError("something follows the compressed file")
    return unpacked


def read_json_value(path: Path) -> Any:
    """The JSON value in the file `path`, compressed if its name ends in `.gz`. Raises OSError as `read_regular` does,
    and ValueError when it is broken."""
    content = read_regular(path, JSON_BYTES)
    return parse_json(unpacked(content, JSON_BYTES) if path.suffix == ".gz" else content)


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
    except UnicodeDecodeError as error:  # which has the whole document in it
        raise ValueError(f"it is not {error.encoding.upper()}: byte {error.start:,} cannot be read") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
