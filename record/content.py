"""Content-encodings: decoding a body as browsers do, and encoding it again.

A text of several, such as `gzip, br`, names them in the order in which they were put on (RFC 9110, section 8.4).
"""

import gzip
import zlib
from bisect import bisect_left
from collections.abc import Callable

import brotli

from record.limits import BODY_BYTES

# Flags of a gzip header, by which it has further parts (RFC 1952, section 2.3.1).
HEADER_CRC, EXTRA, NAME, COMMENT = 2, 4, 8, 16
GZIP_HEADER_BYTES = 10
# The least level at which most servers pack by zstd.
ZSTD_LEVEL = 3
# Codings whose streams begin with bytes that no text has.
MARKED = ("gzip", "zstd")


class UndecodableContent(ValueError):
    """The body cannot be decoded: its Content-Encoding is not supported."""


class BrokenContent(UndecodableContent):
    """The body is not what its Content-Encoding says, or too long."""


def codings(encoding: str) -> list[str]:
    """The codings that a Content-Encoding names, in lower case and in the order in which they were put on."""
    names = (name.strip().lower().removeprefix("x-") for name in encoding.split(","))
    return [name for name in names if name not in ("", "identity")]


def decode(body: bytes, encoding: str) -> bytes:
    """`body` without its content-encoding. Raises UndecodableContent.

    Bytes behind a stream of gzip, deflate or Brotli are ignored, as in browsers.
    """
    for coding in reversed(codings(encoding) if body else []):
        if coding not in CODINGS:
            raise UndecodableContent(f"unknown content-encoding {coding}")
        try:
            # At most one byte more than BODY_BYTES, so that a decompression bomb cannot fill the memory.
            body, is_complete = CODINGS[coding][0](body, BODY_BYTES + 1)
        except (OSError, ValueError, IndexError, zlib.error, brotli.error) as error:
            raise BrokenContent(f"not valid {coding}: {error}") from error
        if len(body) > BODY_BYTES:
            raise BrokenContent(f"longer than {BODY_BYTES >> 20} MiB once decoded")
        if not is_complete:
            raise BrokenContent(f"not valid {coding}: it is cut short")
    return body


def is_packed(body: bytes, encoding: str) -> bool:
    """Whether `body`, which may have been decoded already, is in `encoding` from its first byte to its last."""

    def has_content(stream: bytes) -> bool:
        try:
            return decode(stream, encoding) != b""
        except UndecodableContent:
            return False

    # Streams of Brotli and raw ones of deflate begin with any byte. Only whole ones end with their last.
    return has_content(body) and (codings(encoding)[-1] in MARKED or not has_content(body[:-1]))


def encode(content: bytes, encoding: str) -> bytes:
    """`content` in `encoding`, the same bytes every time. Raises UndecodableContent."""
    for coding in codings(encoding):
        if coding not in CODINGS:
            raise UndecodableContent(f"unknown content-encoding {coding}")
        content = CODINGS[coding][1](content)
    return content


def _decoded_gzip(body: bytes, limit: int) -> tuple[bytes, bool]:
    """The first member alone. Its check sum is not looked at, as browsers do not."""
    if not body.startswith(b"\x1f\x8b\x08"):
        raise ValueError("it does not begin as gzip does")
    flags, place = body[3], GZIP_HEADER_BYTES
    if flags & EXTRA:
        place += 2 + int.from_bytes(body[place : place + 2], "little")
    for flag in (NAME, COMMENT):
        if flags & flag:
            place = body.index(b"\0", place) + 1
    return _inflated(body[place + (2 if flags & HEADER_CRC else 0) :], -zlib.MAX_WBITS, limit)


def _decoded_deflate(body: bytes, limit: int) -> tuple[bytes, bool]:
    """Both zlib's streams, of any window, and raw ones are sent under this name (RFC 9110, section 8.4.1.2)."""
    try:
        return _inflated(body, zlib.MAX_WBITS, limit)
    except zlib.error:
        return _inflated(body, -zlib.MAX_WBITS, limit)


def _inflated(stream: bytes, wbits: int, limit: int) -> tuple[bytes, bool]:
    inflating = zlib.decompressobj(wbits)
    content = inflating.decompress(stream, limit)
    return content, inflating.eof or len(content) == limit


def _decoded_brotli(body: bytes, limit: int) -> tuple[bytes, bool]:
    try:
        return _brotli_of(body, limit)
    except brotli.error:
        # The library refuses bytes behind a stream. The shortest beginning that is not merely cut short ends it.
        return _brotli_of(body[: bisect_left(range(len(body)), True, key=lambda end: _is_ended(body[:end]))], limit)


def _brotli_of(stream: bytes, limit: int) -> tuple[bytes, bool]:
    decompressor = brotli.Decompressor()
    content = bytes(decompressor.process(stream, output_buffer_limit=limit))
    return content, decompressor.is_finished() or len(content) == limit


def _is_ended(stream: bytes) -> bool:
    """Whether a Brotli stream is complete, or broken."""
    try:
        return _brotli_of(stream, BODY_BYTES + 1)[1]
    except brotli.error:
        return True


def _decoded_zstd(body: bytes, limit: int) -> tuple[bytes, bool]:
    import pyarrow

    content: bytes = pyarrow.CompressedInputStream(pyarrow.BufferReader(body), "zstd").read(limit)
    return content, True


def _encoded_zstd(content: bytes) -> bytes:
    import pyarrow

    packed: bytes = pyarrow.Codec("zstd", compression_level=ZSTD_LEVEL).compress(content, asbytes=True)
    return packed


def _encoded_gzip(content: bytes) -> bytes:
    return gzip.compress(content, compresslevel=6, mtime=0)


def _encoded_brotli(content: bytes) -> bytes:
    return bytes(brotli.compress(content, quality=5))


# Coding → how it is taken off a body, at most so many bytes of the content and whether the stream is complete, and how
# it is put on.
CODINGS: dict[str, tuple[Callable[[bytes, int], tuple[bytes, bool]], Callable[[bytes], bytes]]] = {
    "gzip": (_decoded_gzip, _encoded_gzip),
    "deflate": (_decoded_deflate, zlib.compress),
    "br": (_decoded_brotli, _encoded_brotli),
    "zstd": (_decoded_zstd, _encoded_zstd),
}
