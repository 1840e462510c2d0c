"""Content-encodings: decoding a body, and encoding it again."""

import gzip
import io
import zlib

import brotli

from record.limits import BODY_BYTES


class UndecodableContent(ValueError):
    """The body cannot be decoded: its Content-Encoding is not supported."""


class BrokenContent(UndecodableContent):
    """The body is not what its Content-Encoding says, or too long."""


def decode(body: bytes, encoding: str) -> bytes:
    """`body` without its content-encoding. Raises UndecodableContent."""
    match encoding:
        case "" | "identity":
            return body
        case "gzip" | "x-gzip" | "deflate" | "br":
            try:
                content = _decoded(body, encoding)
            except (OSError, EOFError, zlib.error, brotli.error) as error:
                raise BrokenContent(f"not valid {encoding}: {error}") from error
        case _:
            raise UndecodableContent(f"unknown content-encoding {encoding}")
    if len(content) > BODY_BYTES:
        raise BrokenContent(f"longer than {BODY_BYTES >> 20} MiB once decoded")
    return content


def _decoded(body: bytes, encoding: str) -> bytes:
    """At most one byte more than BODY_BYTES, so that a decompression bomb cannot fill the memory."""
    limit = BODY_BYTES + 1
    match encoding:
        case "br":
            brotli_stream = brotli.Decompressor()
            content = bytes(brotli_stream.process(body, output_buffer_limit=limit))
            complete = brotli_stream.is_finished()
        case "deflate":
            # Both zlib-wrapped and raw streams are sent under this name (RFC 9110 section 8.4.1.2).
            zlib_stream = zlib.decompressobj(zlib.MAX_WBITS if body[:1] == b"\x78" else -zlib.MAX_WBITS)
            content = zlib_stream.decompress(body, limit)
            complete = zlib_stream.eof
        case _:
            return gzip.GzipFile(fileobj=io.BytesIO(body)).read(limit)
    if not complete and len(content) < limit:
        raise EOFError("it is cut short")
    return content


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
