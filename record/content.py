"""Content-encodings: decoding a body as browsers do, and encoding it again.

A text with several codings, such as `gzip, br`, names them in the order in which they were applied (RFC 9110, section
8.4).
"""

import gzip
import io
import zlib
from collections.abc import Callable, Iterator
from itertools import chain

import brotli

from base.errors import EyelevelError
from record.limits import BODY_BYTES, DECODED_BYTES

# Bodies are decoded in pieces of this size, so little work is lost when a body turns out to be broken.
PIECE_BYTES = 1 << 16

# Flags of a gzip header that announce further parts (RFC 1952, section 2.3.1).
HEADER_CRC, EXTRA, NAME, COMMENT = 2, 4, 8, 16
GZIP_HEADER_BYTES = 10
# The zstd level at which most servers compress, at least.
ZSTD_LEVEL = 3
# Codings whose streams begin with bytes that no text has.
MARKED = ("gzip", "zstd")


class UndecodableContent(ValueError):
    """The body cannot be decoded: its Content-Encoding is not supported."""


class BrokenContent(UndecodableContent):
    """The body does not match its Content-Encoding, or is too long."""


class Budget:
    """A limit of `most` bytes for the decoded bodies of `source` (a recording or a site) together, or for those of a
    `kind`. Without a limit, each of many small bodies could take a second to decode."""

    def __init__(
        self, source: object, most: int | None = None, kind: str = "compressed or chunked bodies, decoded"
    ) -> None:
        self._bytes_left = DECODED_BYTES if most is None else most
        self._excess = f"{source} holds more than {self._bytes_left >> 20} MiB of {kind}; use one page's load of it"

    def spend(self, count: int) -> None:
        """Take `count` bytes off the budget. Raises EyelevelError when fewer are left."""
        self._bytes_left -= count
        if self._bytes_left < 0:
            raise EyelevelError(self._excess)


def codings(encoding: str) -> list[str]:
    """The codings in a Content-Encoding, in lower case, in the order in which they were applied."""
    names = (name.strip().lower().removeprefix("x-") for name in encoding.split(","))
    return [name for name in names if name not in ("", "identity")]


def decode(body: bytes, encoding: str, budget: Budget | None = None) -> bytes:
    """`body` without its content-encoding; all decoded bytes count against `budget`. Raises UndecodableContent, and
    EyelevelError when the budget is used up.

    Bytes after a stream of gzip, deflate or Brotli are ignored, as in browsers.
    """
    for coding in reversed(codings(encoding) if body else []):
        content = io.BytesIO()  # unlike b"".join, getvalue() makes no copy
        for piece in _counted(body, coding, budget):
            content.write(piece)
        body = content.getvalue()
    return body


def require_decodable(body: bytes, encoding: str, budget: Budget) -> None:
    """Raise what `decode` would, without holding the content in memory."""
    first, *others = codings(encoding) or ["identity"]
    packed = decode(body, ", ".join(others), budget)
    for _ in _counted(packed, first, budget) if packed and first != "identity" else ():
        pass


def _counted(body: bytes, coding: str, budget: Budget | None) -> Iterator[bytes]:
    """`_pieces(body, coding)`. The pieces count against `budget`, and may not be longer than BODY_BYTES together."""
    count = 0
    for piece in _pieces(body, coding):
        if budget:
            budget.spend(len(piece))
        yield piece
        count += len(piece)
        if count > BODY_BYTES:
            raise BrokenContent(f"longer than {BODY_BYTES >> 20} MiB once decoded")


def decode_beginning(body: bytes, encoding: str) -> bytes:
    """The first PIECE_BYTES of `decode(body, encoding)`, or a few less. Raises UndecodableContent."""
    match codings(encoding):
        case [coding] if body:
            return next((piece for piece in _pieces(body, coding) if piece), b"")
    return decode(body, encoding)


def is_packed(body: bytes, encoding: str, budget: Budget) -> bool:
    """Whether `body`, which may have been decoded already, is in `encoding` from its first byte to its last. `budget`
    as in `decode`."""

    def has_content(stream: bytes) -> bool:
        try:
            return decode(stream, encoding, budget) != b""
        except UndecodableContent:
            return False

    # Streams of Brotli and raw deflate may begin with any byte, so plain content may look like one. A body in these
    # encodings must also be impossible to decode without its last byte.
    return has_content(body) and (codings(encoding)[-1] in MARKED or not has_content(body[:-1]))


def encode(content: bytes, encoding: str) -> bytes:
    """`content` in `encoding`; always the same bytes. Raises UndecodableContent."""
    for coding in codings(encoding):
        if coding not in CODINGS:
            raise UndecodableContent(f"unknown content-encoding {coding}")
        content = CODINGS[coding][1](content)
    return content


def _pieces(body: bytes, coding: str) -> Iterator[bytes]:
    """The content of `body` without this coding, in pieces, so that a decompression bomb cannot fill the memory. Raises
    UndecodableContent."""
    if coding not in CODINGS:
        raise UndecodableContent(f"unknown content-encoding {coding}")
    try:
        yield from CODINGS[coding][0](body)
    except (OSError, EOFError, ValueError, IndexError, zlib.error, brotli.error) as error:
        raise BrokenContent(f"not valid {coding}: {error}") from error


def _parts(body: bytes) -> Iterator[bytes]:
    return (body[start : start + PIECE_BYTES] for start in range(0, len(body), PIECE_BYTES))


def _from_gzip(body: bytes) -> Iterator[bytes]:
    """The content of the first member only. Its checksum is not verified; browsers do not verify it either."""
    if not body.startswith(b"\x1f\x8b\x08"):
        raise ValueError("it does not begin as gzip does")
    flags, place = body[3], GZIP_HEADER_BYTES
    if flags & EXTRA:
        place += 2 + int.from_bytes(body[place : place + 2], "little")
    for flag in (NAME, COMMENT):
        if flags & flag:
            place = body.index(b"\0", place) + 1
    return _inflated(body[place + (2 if flags & HEADER_CRC else 0) :], -zlib.MAX_WBITS)


def _from_deflate(body: bytes) -> Iterator[bytes]:
    """Servers send both zlib streams, with any window, and raw deflate streams under this name (RFC 9110, section
    8.4.1.2)."""
    try:
        zlib.decompressobj().decompress(body[:PIECE_BYTES], PIECE_BYTES)
    except zlib.error:
        return _inflated(body, -zlib.MAX_WBITS)
    return _inflated(body, zlib.MAX_WBITS)


def _inflated(body: bytes, window: int) -> Iterator[bytes]:
    stream = zlib.decompressobj(window)
    for part in _parts(body):
        rest = part
        while rest and not stream.eof:
            yield stream.decompress(rest, PIECE_BYTES)
            rest = stream.unconsumed_tail
    while not stream.eof and (piece := stream.decompress(b"", PIECE_BYTES)):
        yield piece
    if not stream.eof:
        raise EOFError("it is cut short")


def _from_brotli(body: bytes) -> Iterator[bytes]:
    """The library refuses a part that contains bytes after the end of the stream: such a part is read again, byte by
    byte."""
    stream, count = brotli.Decompressor(), 0
    for start in range(0, len(body), PIECE_BYTES):
        part = body[start : start + PIECE_BYTES]
        try:
            for piece in _from_part(stream, part):
                count += len(piece)
                yield piece
        except brotli.error:
            yield from _behind(_from_bytes(body[:start], part), count)
            return
        if stream.is_finished():
            return
    if not stream.is_finished():
        raise EOFError("it is cut short")


def _from_part(stream: brotli.Decompressor, part: bytes) -> Iterator[bytes]:
    # The decoder copies its unused input at each call, so it gets parts, not whole bodies.
    yield stream.process(part, output_buffer_limit=PIECE_BYTES)
    while not stream.is_finished():
        piece = stream.process(b"", output_buffer_limit=PIECE_BYTES)
        yield piece
        if not piece and stream.can_accept_more_data():
            return


def _from_bytes(before: bytes, part: bytes) -> Iterator[bytes]:
    """The content of a Brotli stream that ends, or breaks, within `part`, which follows `before`."""
    stream = brotli.Decompressor()
    for piece in chain(_parts(before), (part[place : place + 1] for place in range(len(part)))):
        yield from _from_part(stream, piece)
        if stream.is_finished():
            return
    raise EOFError("it is cut short")


def _behind(pieces: Iterator[bytes], count: int) -> Iterator[bytes]:
    """`pieces` without their first `count` bytes."""
    for piece in pieces:
        yield piece[count:]
        count = max(0, count - len(piece))


def _from_zstd(body: bytes) -> Iterator[bytes]:
    import pyarrow

    stream = pyarrow.CompressedInputStream(pyarrow.BufferReader(body), "zstd")
    while piece := stream.read(PIECE_BYTES):
        yield piece


def _encoded_zstd(content: bytes) -> bytes:
    import pyarrow

    packed: bytes = pyarrow.Codec("zstd", compression_level=ZSTD_LEVEL).compress(content, asbytes=True)
    return packed


def _encoded_gzip(content: bytes) -> bytes:
    return gzip.compress(content, compresslevel=6, mtime=0)


def _encoded_brotli(content: bytes) -> bytes:
    return bytes(brotli.compress(content, quality=5))


# Coding → a function that decodes a body in pieces, and one that encodes content.
CODINGS: dict[str, tuple[Callable[[bytes], Iterator[bytes]], Callable[[bytes], bytes]]] = {
    "gzip": (_from_gzip, _encoded_gzip),
    "deflate": (_from_deflate, zlib.compress),
    "br": (_from_brotli, _encoded_brotli),
    "zstd": (_from_zstd, _encoded_zstd),
}
