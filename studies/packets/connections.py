"""What each connection of a run took, and what its packets were for, as the browser's end saw them."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from studies.packets.bytes import KINDS
from studies.packets.capture import Capture, Connection, Packet
from studies.packets.layers import DATA, FINISHED, HEADERS

# What the times of a connection are, all as the browser's end saw them.
TIMES = {
    "handshake_ms": "from the connection's first packet to the server's last handshake message (Finished)",
    "request_ms": "from the connection's first packet to the first request, as it left",
    "first_byte_ms": "from the connection's first packet to the first packet of a response",
    "content_ms": "from there to the last packet with new content of responses",
    "closing_ms": "from the first packet that says that the connection ends (FIN, RST, CONNECTION_CLOSE) to the last "
    "packet of all",
}


@dataclass(frozen=True)
class Tally:
    """How many packets, how many bytes in them as captured (from the IP header on), and these by kind."""

    packets: int
    bytes: int
    kinds: Counter[str]

    def columns(self, prefix: str = "") -> dict[str, int]:
        """As columns of a table."""
        told = {f"{prefix}packets": self.packets, f"{prefix}bytes": self.bytes}
        return told | {f"{prefix}{kind}": self.kinds[kind] for kind in KINDS}


def tally(packets: Iterable[Packet]) -> Tally:
    """Count `packets`."""
    kinds: Counter[str] = Counter()
    number, size = 0, 0
    for packet in packets:
        number, size = number + 1, size + packet.bytes
        kinds.update(packet.kinds)
    return Tally(number, size, kinds)


def by_connection(capture: Capture) -> dict[Connection, list[Packet]]:
    """The packets of each connection, which are in the order they began in."""
    found: dict[Connection, list[Packet]] = defaultdict(list)
    for packet in capture.packets:
        if packet.connection:
            found[packet.connection].append(packet)
    return dict(found)


def times(packets: Sequence[Packet]) -> dict[str, float]:
    """`TIMES` of a connection from its packets at the browser's end; not a number where something did not happen."""
    start_s = packets[0].at_s
    finished = _at(packets, from_server=True, messages={FINISHED}, last=True)
    first_byte = _at(packets, from_server=True, messages={HEADERS})
    content_end = _at(packets, from_server=True, messages={HEADERS, DATA}, last=True)
    closing = next((packet.at_s for packet in packets if packet.closes), math.nan)
    spans = {
        "handshake_ms": finished - start_s,
        "request_ms": _at(packets, from_server=False, messages={HEADERS}) - start_s,
        "first_byte_ms": first_byte - start_s,
        "content_ms": content_end - first_byte,
        "closing_ms": packets[-1].at_s - closing,
    }
    return {name: 1e3 * span_s for name, span_s in spans.items()}


def handshake(packets: Sequence[Packet]) -> list[Packet]:
    """The packets of a connection until the client's Finished left, with that one; none if it never did."""
    end_s = _at(packets, from_server=False, messages={FINISHED}, last=True)
    return [packet for packet in packets if packet.at_s <= end_s]


def first_to_be_asked(capture: Capture) -> Connection | None:
    """The connection over which the first request went."""
    asked = (packet for packet in capture.packets if not packet.from_server and HEADERS in packet.messages)
    return next((packet.connection for packet in asked), None)


def _at(packets: Iterable[Packet], *, from_server: bool, messages: set[str], last: bool = False) -> float:
    """When the first or last packet with one of `messages` passed; not a number when none did."""
    found = [packet.at_s for packet in packets if packet.from_server == from_server and messages & packet.messages]
    return (found[-1] if last else found[0]) if found else math.nan
