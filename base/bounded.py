"""Reads files that strangers may have made, with limited memory and without ever waiting for a file.

Standard library only.
"""

import json
import os
import re
import stat
import zlib
from pathlib import Path
from typing import Any

# A string; or the start of an object or a list; or the comma before a further value. Escapes are ignored.
JSON_TOKEN = re.compile(rb'"[^"]*"?|[\[{,]')
# A limit on the number of values. The size of the file is no limit on memory: an empty list within a list needs twenty
# times its bytes in memory, an empty object more.
JSON_VALUES = 3_000_000
# The most bytes of a JSON file, both as stored and after decompression.
JSON_BYTES = 64 << 20


class TooLong(OSError):
    """A file is longer than allowed."""


def open_regular(path: Path, *, follow: bool = False) -> int:
    """A descriptor to read the file `path`. Raises OSError unless it is a regular file, not for example a pipe or a
    device.

    A symbolic link is refused unless `follow`: only a link that the user named directly may lead anywhere.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | (0 if follow else os.O_NOFOLLOW))
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{path.name} is not a regular file")
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def read_regular(path: Path, limit_bytes: int, *, follow: bool = False) -> bytes:
    """The content of the file `path`, whatever size its file system reports.

    Raises TooLong when it is longer than `limit_bytes`, and OSError as `open_regular` does.
    """
    with os.fdopen(open_regular(path, follow=follow), "rb") as file:
        expected_bytes = os.fstat(file.fileno()).st_size
        content = file.read(expected_bytes + 1) if expected_bytes <= limit_bytes else None
        if content and len(content) > expected_bytes:  # some file systems report no size
            content += file.read(limit_bytes)
    if content is None or len(content) > limit_bytes:
        raise TooLong(f"it is longer than {limit_bytes >> 20} MiB")
    return content


def unpacked(content: bytes, limit_bytes: int) -> bytes:
    """Decompress `content` (gzip, RFC 1952). Raises ValueError when it is broken, or longer than `limit_bytes` when
    decompressed."""
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
    """The value of the JSON text `document`. Raises ValueError when it is not JSON, or would need far more memory than
    its own size."""
    without_escapes = document.replace(rb"\\", b"").replace(rb"\"", b"")
    values = 0
    for token in JSON_TOKEN.finditer(without_escapes):
        values += without_escapes[token.start()] != ord('"')
        if values > JSON_VALUES:
            raise ValueError(f"it holds more than {JSON_VALUES:,} values")
    try:
        return json.loads(document)
    except UnicodeDecodeError as error:  # its own text would contain the whole document
        raise ValueError(f"it is not {error.encoding.upper()}: byte {error.start:,} cannot be read") from None
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
