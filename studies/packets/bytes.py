"""The kinds of bytes in packets, by purpose. Every byte of a capture is of exactly one kind."""

import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from measure.captures.byte_stream import ByteStream
from studies.packets.extents import Extent

IP = "ip"
TRANSPORT = "transport"
SECURITY = "security"
FRAMING = "framing"
HANDSHAKE = "handshake"
ACKNOWLEDGING = "acknowledging"
PADDING = "padding"
CONTROL = "control"
HTTP_HEADERS = "http_headers"
AGAIN = "again"
PAYLOAD = "payload"
OTHER = "other"
UNREAD = "unread"

TABLES = tomllib.loads(Path(__file__).with_name("tables.toml").read_text())
# The kinds with their meaning, in the order of tables.
KINDS: dict[str, str] = TABLES["kinds"]


@dataclass(frozen=True)
class Piece:
    """Consecutive bytes of a packet, of one kind. `label`: the name of the message that they belong to, if any;
    `owner`: the number of the HTTP/2 stream."""

    kind: str
    bytes: int
    label: str = ""
    owner: int | None = None


class Stream:
    """One direction of a byte stream: the kind of its bytes, by offset, and the ranges that have been sent."""

    def __init__(self) -> None:
        self._parts = ByteStream[tuple[str, str, int | None]]()
        self._sent: list[tuple[int, int]] = []

    @property
    def length(self) -> int:
        """The offset up to which the kinds are known."""
        return self._parts.length

    def append(self, length: int, kind: str, label: str = "", owner: int | None = None) -> None:
        """Append `length` bytes of `kind`, which belong to the message `label` and to the HTTP/2 stream `owner`."""
        self._parts.append(length, (kind, label, owner))

    def extents(self, start: int) -> Iterator[Extent]:
        """The extents from `start` to the end, each with the owner of its bytes."""
        for size, (_, _, owner) in self._parts.between(start, self.length):
            yield Extent(owner, start, start + size)
            start += size

    def take(self, start: int, end: int) -> list[Piece]:
        """The pieces of a packet with the bytes from `start` to `end`; bytes that were taken before are of the kind
        `AGAIN`."""
        pieces = []
        for begin, stop, fresh in self._fresh(start, end):
            for size, (kind, label, owner) in self._parts.between(begin, stop):
                pieces.append(Piece(kind if fresh else AGAIN, size, label, owner))
            if (unread_bytes := stop - max(begin, self.length)) > 0:
                pieces.append(Piece(UNREAD if fresh else AGAIN, unread_bytes))
        return pieces

    def _fresh(self, start: int, end: int) -> list[tuple[int, int, bool]]:
        """The parts of the range, cut at the edges of ranges that were sent before: start, end, and whether the part is
        new. Marks the range as sent."""
        neighbours = [part for part in self._sent if part[0] <= end and part[1] >= start]
        starts, ends = zip((start, end), *neighbours, strict=True)
        self._sent = [*(part for part in self._sent if part not in neighbours), (min(starts), max(ends))]
        cuts = sorted({edge for edge in (*starts, *ends) if start <= edge <= end})
        return [(at, stop, not any(first <= at < last for first, last in neighbours)) for at, stop in pairwise(cuts)]


def bytes_by_kind(pieces: Iterable[Piece]) -> Counter[str]:
    """The number of bytes of each kind."""
    total: Counter[str] = Counter()
    for piece in pieces:
        total[piece.kind] += piece.bytes
    return total
