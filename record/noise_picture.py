"""Pictures of a given size in bytes, for generated pages."""

import hashlib
import struct
import zlib
from itertools import pairwise

from base.errors import EyelevelError

SIGNATURE = b"\x89PNG\r\n\x1a\n"
# Every chunk has a length, a type and a CRC around its data.
CHUNK_BYTES = 12
# Decoders may read a chunk into memory before they skip it.
PADDING_BYTES = 1 << 16
# The lower case letters make this type of chunk private, and decoders may skip it (PNG, section 5.4).
PADDING = b"noSe"


def noise_picture(size_bytes: int, seed: str, width: int = 1, height: int = 1) -> bytes:
    """A PNG file of white pixels with exactly `size_bytes`, most of them noise from `seed`.

    Raises EyelevelError if a PNG file cannot be that small.
    """
    header = _chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    start = SIGNATURE + header + _chunk(b"IDAT", zlib.compress((b"\x00" + width * b"\xff") * height))
    end = _chunk(b"IEND", b"")
    padding = size_bytes - len(start) - len(end)
    if padding < CHUNK_BYTES:
        raise EyelevelError(f"an image has at least {len(start) + len(end) + CHUNK_BYTES} bytes, not {size_bytes}")
    chunks = -(-padding // (CHUNK_BYTES + PADDING_BYTES))
    noise = hashlib.shake_128(seed.encode()).digest(padding - chunks * CHUNK_BYTES)
    cuts = [len(noise) * number // chunks for number in range(chunks + 1)]
    filling = [_chunk(PADDING, noise[first:last]) for first, last in pairwise(cuts)]
    return b"".join((start, *filling, end))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return b"".join((struct.pack(">I", len(data)), kind, data, struct.pack(">I", zlib.crc32(data, zlib.crc32(kind)))))
