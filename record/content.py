"""Content-encodings: taking them off a body, and putting the same one on again."""

import gzip
import zlib

import brotli


class UndecodableContent(ValueError):
    """The body is not what its Content-Encoding says."""


def decode(body: bytes, encoding: str) -> bytes:
    """`body` without its content-encoding. Raises UndecodableContent, also for encodings we lack."""
    try:
        match encoding:
            case "" | "identity":
                return body
            case "gzip" | "x-gzip":
                return gzip.decompress(body)
            case "deflate":
                # Both zlib-wrapped and raw streams are sent under this name (RFC 9110 section 8.4.1.2).
                return zlib.decompress(body, 47 if body[:1] == b"\x78" else -zlib.MAX_WBITS)
            case "br":
                return bytes(brotli.decompress(body))
    except (OSError, EOFError, zlib.error, brotli.error) as error:
        raise UndecodableContent(f"not valid {encoding}: {error}") from error
    raise UndecodableContent(f"unknown content-encoding {encoding}")


def encode(content: bytes, encoding: str) -> bytes:
    """`content` under `encoding`, the same bytes every time. `encoding` is one that `decode` takes."""
    match encoding:
        case "" | "identity":
            return content
        case "gzip" | "x-gzip":
            return gzip.compress(content, compresslevel=6, mtime=0)
        case "deflate":
            return zlib.compress(content)
        case "br":
            return bytes(brotli.compress(content, quality=5))
    raise ValueError(f"unknown content-encoding {encoding}")
