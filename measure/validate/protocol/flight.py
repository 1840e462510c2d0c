"""The bytes in flight of a sender, and the loss that it answered, from a capture at the servers, read with tshark."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from base.errors import EyelevelError
from measure.captures.reading import BULK_BYTES, HTTPS_PORT, UDP_HEADER_BYTES, WIRES, read_fields

# A QUIC packet counts as lost when one sent this many packets later has arrived (RFC 9002, section 6.1.1).
PACKET_THRESHOLD = 3
SHORT_HEADER = "0"

FIELDS = {
    "h2": ("tcp.stream", "tcp.srcport", "tcp.seq", "tcp.len", "tcp.ack", "tcp.options.sack_le", "tcp.options.sack_re"),
    "h3": (
        "udp.stream",
        "udp.srcport",
        "udp.length",
        "quic.header_form",
        "quic.packet_number",
        "quic.ack.largest_acknowledged",
        "quic.ack.first_ack_range",
        "quic.ack.gap",
        "quic.ack.ack_range",
    ),
}
# tshark need not reassemble the contents of packets.
OPTIONS = ("-o", "tcp.desegment_tcp_streams:FALSE")

Fields = Mapping[str, list[str]]


@dataclass(frozen=True)
class Flight:
    """The bytes in flight of one connection's server: each of `in_flight_bytes` holds from the time at its place in
    `at_s` (s since 1970).

    `lost_packets`: how many did not arrive. `detected_at_s`: when the server must have detected the first loss.
    `recovered_at_s`: when all that had been sent until then was acknowledged, which ends the recovery (RFC 6675,
    section 5; RFC 9002, section 7.3.2). `last_sent_at_s`: when the last bulk data left.
    """

    at_s: NDArray[np.float64]
    in_flight_bytes: NDArray[np.float64]
    lost_packets: int
    detected_at_s: float
    recovered_at_s: float
    last_sent_at_s: float

    def most_bytes(self, since_s: float, until_s: float) -> float:
        """The most bytes in flight between `since_s` and `until_s`; 0 if nothing was sent or acknowledged in that
        time."""
        first, end = np.searchsorted(self.at_s, (since_s, until_s))
        return float(self.in_flight_bytes[first:end].max(initial=0.0))


def read_flight(capture: Path, keys: Path, http_version: str) -> Flight:
    """The flight of the connection in `capture` that lost a packet; `lost_packets` is summed over all large
    connections.

    There are two large connections if the browser visits the page twice. Raises EyelevelError, also if nothing was
    lost.
    """
    read, stream = tcp_flight if http_version == "h2" else quic_flight, WIRES[http_version].stream
    connections: dict[str, list[Fields]] = {}
    for packet in read_fields(capture, keys, ("frame.time_epoch", *FIELDS[http_version]), *OPTIONS):
        if packet[stream]:
            connections.setdefault(packet[stream][0], []).append(packet)
    most = max(map(len, connections.values()), default=0)
    flights = [read(packets) for packets in connections.values() if len(packets) > most / 2]
    with_loss = [flight for flight in flights if flight]
    if not with_loss:
        raise EyelevelError("no packet of the transfer was lost and sent again; one was to be dropped")
    return replace(with_loss[0], lost_packets=sum(flight.lost_packets for flight in with_loss))


def tcp_flight(packets: Iterable[Fields]) -> Flight | None:
    """The flight of one TCP connection's packets; None if none was lost. Bytes are in flight from when they are sent
    until they are acknowledged, selectively or not (RFC 2018)."""
    at_s: list[float] = []
    in_flight: list[float] = []
    sent_end = acknowledged = selective = lost = 0
    last_sent_at_s = 0.0
    detection: tuple[float, int] | None = None
    recovered_at_s = None
    for packet in packets:
        now_s = float(packet["frame.time_epoch"][0])
        if packet["tcp.srcport"] == [HTTPS_PORT]:
            begin, length = int(packet["tcp.seq"][0]), int(packet["tcp.len"][0])
            if length and begin < sent_end:
                lost += 1
                detection = detection or (now_s, sent_end)
            elif length > BULK_BYTES:
                last_sent_at_s = now_s
            sent_end = max(sent_end, begin + length)
        else:
            acknowledged = max(acknowledged, int(packet["tcp.ack"][0] if packet["tcp.ack"] else 0))
            blocks = zip(packet["tcp.options.sack_le"], packet["tcp.options.sack_re"], strict=True)
            selective = sum(int(end) - int(begin) for begin, end in blocks if int(begin) >= acknowledged)
            if detection and recovered_at_s is None and acknowledged >= detection[1]:
                recovered_at_s = now_s
        at_s.append(now_s)
        in_flight.append(sent_end - acknowledged - selective)
    return _flight(at_s, in_flight, lost, detection and detection[0], recovered_at_s, last_sent_at_s)


def quic_flight(packets: Iterable[Fields]) -> Flight | None:
    """The flight of one QUIC connection's packets, without those of the handshake; None if none was lost. A packet is
    in flight from when it is sent until it is acknowledged or counts as lost."""
    at_s: list[float] = []
    in_flight: list[float] = []
    sent_at_s: dict[int, float] = {}
    unacknowledged: dict[int, int] = {}
    largest_acknowledged_at: list[tuple[float, int]] = []
    last_sent_at_s = 0.0
    total_bytes = largest = 0
    for packet in packets:
        now_s = float(packet["frame.time_epoch"][0])
        if packet["quic.header_form"] != [SHORT_HEADER]:
            continue
        if packet["udp.srcport"] == [HTTPS_PORT]:
            number, length = int(packet["quic.packet_number"][0]), int(packet["udp.length"][0]) - UDP_HEADER_BYTES
            unacknowledged[number] = length
            total_bytes += length
            sent_at_s[number] = now_s
            if length > BULK_BYTES:
                last_sent_at_s = now_s
        elif packet["quic.ack.largest_acknowledged"]:
            ranges = list(_ranges(packet))
            for number in [n for n in unacknowledged if any(least <= n <= most for least, most in ranges)]:
                total_bytes -= unacknowledged.pop(number)
            if ranges[0][1] > largest:
                largest = ranges[0][1]
                largest_acknowledged_at.append((now_s, largest))
        at_s.append(now_s)
        in_flight.append(total_bytes)
    lost = sorted(number for number in unacknowledged if number < largest)
    detected_at_s = recovered_at_s = None
    if lost:
        detected_at_s = _first_at(largest_acknowledged_at, lost[0] + PACKET_THRESHOLD)
    if detected_at_s is not None:
        sent_until = max(number for number, sent_s in sent_at_s.items() if sent_s <= detected_at_s)
        recovered_at_s = _first_at(largest_acknowledged_at, sent_until + 1)
        # From its detection on, the sender no longer counts the lost packet as in flight.
        in_flight = [
            value - unacknowledged[lost[0]] * (now_s >= detected_at_s)
            for now_s, value in zip(at_s, in_flight, strict=True)
        ]
    return _flight(at_s, in_flight, len(lost), detected_at_s, recovered_at_s, last_sent_at_s)


def _ranges(packet: Fields) -> Iterator[tuple[int, int]]:
    """The least and the largest number of each range of an ACK frame (RFC 9000, section 19.3.1)."""
    most = int(packet["quic.ack.largest_acknowledged"][0])
    least = most - int(packet["quic.ack.first_ack_range"][0])
    yield least, most
    for gap, length in zip(packet["quic.ack.gap"], packet["quic.ack.ack_range"], strict=True):
        most = least - int(gap) - 2
        least = most - int(length)
        yield least, most


def _first_at(largest_acknowledged_at: list[tuple[float, int]], number: int) -> float | None:
    """When this packet, or a later one, was first acknowledged."""
    return next((at_s for at_s, largest in largest_acknowledged_at if largest >= number), None)


def _flight(
    at_s: list[float],
    in_flight: list[float],
    lost: int,
    detected_at_s: float | None,
    recovered_at_s: float | None,
    last_sent_at_s: float,
) -> Flight | None:
    if detected_at_s is None or recovered_at_s is None:
        return None
    return Flight(np.array(at_s), np.array(in_flight, float), lost, detected_at_s, recovered_at_s, last_sent_at_s)
