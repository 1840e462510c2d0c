"""The times of each connection of a run, and its packets and bytes by kind, as captured at the browser's end."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence

from studies.packets.bytes import KINDS, TABLES
from studies.packets.dissection import Capture, ConnectionKey, PacketRecord
from studies.packets.layers import DATA, FINISHED, HEADERS

# The times of a connection, all at the browser's end, each with its name in words and its definition.
TIMES: dict[str, dict[str, str]] = TABLES["times"]


def tally(packets: Sequence[PacketRecord]) -> dict[str, int]:
    """The number of packets, their bytes as captured (from the IP header on), and their bytes by kind."""
    kinds = {kind: sum(packet.kinds.get(kind, 0) for packet in packets) for kind in KINDS}
    return {"packets": len(packets), "bytes": sum(packet.bytes for packet in packets), **kinds}


def by_connection(capture: Capture) -> dict[ConnectionKey, list[PacketRecord]]:
    """The packets of each connection; connections are in the order in which they began."""
    result: dict[ConnectionKey, list[PacketRecord]] = defaultdict(list)
    for packet in capture.packets:
        if packet.connection:
            result[packet.connection].append(packet)
    return dict(result)


def times(packets: Sequence[PacketRecord]) -> dict[str, float]:
    """`TIMES` of a connection from its packets at the browser's end; NaN for events that did not happen."""
    start_s = packets[0].at_s
    finish = _at(packets, from_server=True, messages={FINISHED}, last=True)
    first_byte = _at(packets, from_server=True, messages={HEADERS})
    content_end = _at(packets, from_server=True, messages={HEADERS, DATA}, last=True)
    closing = next((packet.at_s for packet in packets if packet.closes), math.nan)
    spans = {
        "handshake_ms": finish - start_s,
        "request_ms": _at(packets, from_server=False, messages={HEADERS}) - start_s,
        "first_byte_ms": first_byte - start_s,
        "content_ms": content_end - first_byte,
        "closing_ms": packets[-1].at_s - closing,
    }
    return {name: 1e3 * span_s for name, span_s in spans.items()}


def handshake(packets: Sequence[PacketRecord]) -> list[PacketRecord]:
    """The packets of a connection up to and including the client's Finished; empty if the client never sent it."""
    end_s = _at(packets, from_server=False, messages={FINISHED}, last=True)
    return [packet for packet in packets if packet.at_s <= end_s]


def first_request_connection(capture: Capture) -> ConnectionKey | None:
    """The connection of the first request."""
    requests = (packet for packet in capture.packets if not packet.from_server and HEADERS in packet.messages)
    return next((packet.connection for packet in requests), None)


def _at(packets: Iterable[PacketRecord], *, from_server: bool, messages: set[str], last: bool = False) -> float:
    """When the first or last packet with one of `messages` passed; NaN if none did."""
    times_s = [packet.at_s for packet in packets if packet.from_server == from_server and messages & packet.messages]
    return (times_s[-1] if last else times_s[0]) if times_s else math.nan
