"""Reading the files of a campaign's folder. They may be anybody's: none is read through a link, waited for, or read
beyond a limit."""

import zlib
from pathlib import Path
from typing import Any

from base.errors import EyelevelError
from record.bounded import parse_json, read_regular
from record.http1 import MalformedMessage

# How long a file may be, by how its name ends; all others are pages, pictures and tables of a report.
MOST_BYTES = {".csv": 160 << 20, ".json": 64 << 20, ".jsonl": 64 << 20, ".toml": 1 << 20, ".gz": 64 << 20}
MOST_BYTES_OF_OTHERS = 160 << 20


def read_bytes(path: Path) -> bytes:
    """The content of the file `path`.

    Raises FileNotFoundError when there is none, and EyelevelError when it is too long, or no regular file.
    """
    try:
        return read_regular(path, MOST_BYTES.get(path.suffix, MOST_BYTES_OF_OTHERS))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise FileNotFoundError(*error.args) from None
    except MalformedMessage as error:
        raise EyelevelError(f"{path} cannot be read: {error}") from None
    except OSError as error:
        raise EyelevelError(f"{path} cannot be read: {error.strerror or error}") from None


def read_text(path: Path) -> str:
    """The text in the file `path`, unpacked if its name ends with `.gz`. Raises what `read_bytes` does, and
    EyelevelError when it is broken."""
    content = read_bytes(path)
    try:
        return (_unpacked(content) if path.suffix == ".gz" else content).decode()
    except (ValueError, zlib.error) as error:
        raise EyelevelError(f"{path} is broken: {error}") from None


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in the file `path`. Raises what `read_text` does."""
    try:
        document = parse_json(read_text(path).encode())
    except ValueError as error:
        raise EyelevelError(f"{path} is broken: {error}") from None
    if not isinstance(document, dict):
        raise EyelevelError(f"{path} is broken: it holds no JSON object")
    return document


def _unpacked(content: bytes) -> bytes:
    """Raises ValueError or zlib.error."""
    unpacking = zlib.decompressobj(zlib.MAX_WBITS | 16)  # gzip (RFC 1952)
    unpacked = unpacking.decompress(content, MOST_BYTES[".gz"])
    if unpacking.unconsumed_tail:
        raise ValueError(f"it is longer than {MOST_BYTES['.gz'] >> 20} MiB when it is unpacked")
    if not unpacking.eof:
        raise ValueError("it was cut short")
    return unpacked
