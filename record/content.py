"""Content-encodings: decoding a body, and encoding it again."""

import gzip
import io
import zlib
from collections.abc import Iterator

import brotli

from base.errors import EyelevelError
from record.limits import BODY_BYTES, DECODED_BYTES

# A body that turns out to be broken has cost as much, at most, as was not seen of it.
PIECE_BYTES = 1 << 16
# In zlib's terms.
GZIP = zlib.MAX_WBITS | 16


class UndecodableContent(ValueError):
    """The body cannot be decoded: its Content-Encoding is not supported."""


class BrokenContent(UndecodableContent):
    """The body is not what its Content-Encoding says, or too long."""


class Budget:
    """How much all bodies of `source`, a recording or a site, may become when they are decoded: each may be small and
    take a second."""

    def __init__(self, source: object) -> None:
        self._source = source
        self._bytes_left = DECODED_BYTES

    def spend(self, count: int) -> None:
        """Take `count` bytes off. Raises EyelevelError when so many are not left."""
        self._bytes_left -= count
        if self._bytes_left < 0:
            most = f"more than {DECODED_BYTES >> 20} MiB of compressed or chunked bodies, decoded"
            raise EyelevelError(f"{self._source} holds {most}; use one page's load of it")


def decode(body: bytes, encoding: str, budget: Budget | None = None) -> bytes:
    """`body` without its content-encoding; a `budget` is spent on whatever was encoded. Raises UndecodableContent, and
    EyelevelError when the budget is spent."""
    if encoding in ("", "identity"):
        return body
    content = io.BytesIO()
    try:
        for piece in _pieces(body, encoding):
            if budget:
                budget.spend(len(piece))
            content.write(piece)
            if content.tell() > BODY_BYTES:
                raise BrokenContent(f"longer than {BODY_BYTES >> 20} MiB once decoded")
    except (OSError, EOFError, zlib.error, brotli.error) as error:
        raise BrokenContent(f"not valid {encoding}: {error}") from error
    return content.getvalue()


def decode_beginning(body: bytes, encoding: str) -> bytes:
    """The first PIECE_BYTES of `decode(body, encoding)`, or a few less. Raises UndecodableContent."""
    if encoding in ("", "identity"):
        return body
    try:
        return next((piece for piece in _pieces(body, encoding) if piece), b"")
    except (OSError, EOFError, zlib.error, brotli.error) as error:
        raise BrokenContent(f"not valid {encoding}: {error}") from error


def _pieces(body: bytes, encoding: str) -> Iterator[bytes]:
    """The content of the encoded `body`, piece by piece, so that a decompression bomb cannot fill the memory. Raises
    what the decoders do, EOFError when it is cut short, and UndecodableContent."""
    match encoding:
        case "br":
            return _from_brotli(body)
        case "deflate":
            # Both zlib-wrapped and raw streams are sent under this name (RFC 9110 section 8.4.1.2).
            return _inflated(body, zlib.MAX_WBITS if body[:1] == b"\x78" else -zlib.MAX_WBITS)
        case "gzip" | "x-gzip":
            return _inflated(body, GZIP)
    raise UndecodableContent(f"unknown content-encoding {encoding}")


def _from_brotli(body: bytes) -> Iterator[bytes]:
    stream = brotli.Decompressor()
    # Decoders keep a copy of what they have not used yet each time.
    for part in _parts(body):
        if stream.is_finished():
            raise brotli.error("something follows the compressed content")
        yield stream.process(part, output_buffer_limit=PIECE_BYTES)
        while not (stream.is_finished() or stream.can_accept_more_data()):
            yield stream.process(b"", output_buffer_limit=PIECE_BYTES)
    while not stream.is_finished() and (piece := stream.process(b"", output_buffer_limit=PIECE_BYTES)):
        yield piece
    if not stream.is_finished():
        raise EOFError("it is cut short")


def _inflated(body: bytes, window: int) -> Iterator[bytes]:
    """Members of gzip may follow each other, with zeros between them (RFC 1952, section 2.2)."""
    stream = zlib.decompressobj(window)
    for part in _parts(body):
        rest = part
        while rest:
            if stream.eof:
                if window != GZIP:
                    return
                if not (rest := rest.lstrip(b"\0")):
                    break
                stream = zlib.decompressobj(window)
            yield stream.decompress(rest, PIECE_BYTES)
            rest = stream.unused_data if stream.eof else stream.unconsumed_tail
    while not stream.eof and (piece := stream.decompress(b"", PIECE_BYTES)):
        yield piece
    if body and not stream.eof:
        raise EOFError("it is cut short")


def _parts(body: bytes) -> Iterator[bytes]:
    return (body[start : start + PIECE_BYTES] for start in range(0, len(body), PIECE_BYTES))


def encode(content: bytes, encoding: str) -> bytes:
    """`content` in `encoding`, the same bytes every time. Raises UndecodableContent."""
    match encoding:
        case "" | "identity":
            return content
        case "gzip" | "x-gzip":
            return gzip.compress(content, compresslevel=6, mtime=0)
        case "deflate":
            return zlib.compress(content)
        case "br":
            return bytes(brotli.compress(content, quality=5))
    raise UndecodableContent(f"unknown content-encoding {encoding}")
