"""Where the bytes of HTTP's streams are: ranges of what a connection carries."""

from dataclasses import dataclass

# The server's part of the handshake: every stream needs it, whatever the transport.
EVERY_STREAM = -1


@dataclass(frozen=True)
class Extent:
    """The bytes from `start` to before `end`.

    `stream` is the number of the HTTP stream whose bytes they are, EVERY_STREAM, or None: of no HTTP stream, or of any
    in TCP's sequence. Offsets count from 0, within TCP's sequence or within QUIC's stream.
    """

    stream: int | None
    start: int
    end: int

    @property
    def bytes(self) -> int:
        """Its length."""
        return self.end - self.start


@dataclass(frozen=True)
class Record:
    """Bytes that are of use only when all of them are there: a TLS record. `extents` say whose bytes it consists of, in
    order and without gaps."""

    extents: tuple[Extent, ...]
