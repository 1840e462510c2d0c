"""Reads the files of a campaign's folder as untrusted input: regular files only, no links, up to a size limit."""

import errno
from pathlib import Path
from typing import Any

from base.bounded import JSON_BYTES, TooLong, parse_json, read_regular, unpacked
from base.errors import EyelevelError

# Size limits by suffix. Files with other suffixes are pages, pictures and tables of a report.
MOST_BYTES = {".csv": 160 << 20, ".json": JSON_BYTES, ".jsonl": 64 << 20, ".toml": 1 << 20, ".gz": JSON_BYTES}
MOST_BYTES_OF_OTHERS = 160 << 20


def read_bytes(path: Path) -> bytes:
    """The content of the file `path`.

    Raises FileNotFoundError if it does not exist, and EyelevelError if it is too long or no regular file.
    """
    try:
        return read_regular(path, MOST_BYTES.get(path.suffix, MOST_BYTES_OF_OTHERS))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise FileNotFoundError(*error.args) from None
    except TooLong as error:
        raise EyelevelError(f"{path} cannot be read: {error}") from None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise EyelevelError(f"{path} cannot be read: it is a symbolic link; copy the file here") from None
        raise EyelevelError(f"{path} cannot be read: {error.strerror or error}") from None


def read_text(path: Path) -> str:
    """The text of the file `path`, decompressed if its name ends in `.gz`. Raises FileNotFoundError, and EyelevelError
    if it cannot be read, is too long or is broken."""
    content = read_bytes(path)
    try:
        return (unpacked(content, JSON_BYTES) if path.suffix == ".gz" else content).decode()
    except ValueError as error:
        raise EyelevelError(f"{path} is broken: {error}") from None


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in the file `path`, which may be compressed. Raises the same errors as `read_text`."""
    try:
        document = parse_json(read_text(path).encode())
    except ValueError as error:
        raise EyelevelError(f"{path} is broken: {error}") from None
    if not isinstance(document, dict):
        raise EyelevelError(f"{path} is broken: it is not a JSON object")
    return document
