"""The places of the bytes of HTTP's streams: ranges within the data of a connection."""

from dataclasses import dataclass

# The owner of the server's part of the handshake, which every stream needs over any transport.
EVERY_STREAM = -1


@dataclass(frozen=True)
class Extent:
    """The bytes from `start` up to, but not including, `end`.

    `stream`: the number of the HTTP stream that owns the bytes, or EVERY_STREAM. It is None if they belong to no HTTP
    stream, or if they are a range of TCP's sequence whose owners are not stated. Offsets count from 0, within TCP's
    sequence or within the QUIC stream.
    """

    stream: int | None
    start: int
    end: int

    @property
    def bytes(self) -> int:
        """The length of the extent."""
        return self.end - self.start


@dataclass(frozen=True)
class Record:
    """Bytes that are useless until all of them have arrived: a TLS record. `extents`: the record's bytes by owner, in
    order and without gaps."""

    extents: tuple[Extent, ...]
