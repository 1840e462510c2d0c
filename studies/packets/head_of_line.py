"""Head-of-line blocking: how long data that had arrived at the browser's end waited for other data, and for which.

The analysis covers the bytes that the server sent on the streams of requests: HTTP/2's streams, and QUIC's
bidirectional streams that the client opened. Each of these bytes has these times:

    arrival    The first packet with the byte is in the capture.
    stream     Everything before it on its own stream has arrived, too. A stream is delivered in order (RFC 9000
               section 2.2), so any transport waits until then.
    record     TCP: the whole TLS record with it has arrived, too. Before that, no part of the record can be decrypted
               (RFC 8446 section 5.2). QUIC: the same as `stream`, since each packet is decrypted by itself (RFC 9001,
               5.3).
    front      TCP: everything in front of it has arrived, on any stream, since TCP delivers in order (RFC 9293
               section 3.4). QUIC: the same as `stream`, since each stream is ordered by itself.
    delivery   The later of `record` and `front`: the browser can read the byte.

From arrival to delivery a byte waits for these causes, one after the other:

    stream     from arrival to stream: bytes of its own stream are missing
    record     from stream to record: its stream lacks nothing before it, but its TLS record is not complete. This
               costs time even without any loss
    others     from record to delivery: it is complete, and bytes of other streams in front of it are missing

The wait for `others` is head-of-line blocking as RFC 9114 (section 2.1) describes it for HTTP/2: a transport with
independent streams delivers such data at once. It does not include the time in which bytes of other streams in front of
the byte were missing while the byte's record was not complete either. The wait that includes this time is called

    front      from stream to front: bytes of other streams in front of it are missing, whether its record is complete
               or not

So head-of-line blocking is at least `others` and at most `front`. If a gap has bytes of the byte's own stream and of
others, the wait counts as `stream` until only the others' bytes are missing.

A gap opens when data arrives beyond the highest byte so far. One end cannot see whether the missing bytes were lost or
overtaken, and for the waits it does not matter. Only the first arrival of a byte counts, so duplicates change nothing.
A loss that no later data follows (at the end of a flight, recovered by a timeout) blocks nothing: its recovery takes
time, too, but not through head-of-line blocking. Bytes that belong to no request's stream (frames of the connection,
headers and tags of records) block others, but their own waits are not counted. Every stream needs the server's
handshake over any transport, so a wait for it counts as `stream`. Data that never became complete, such as a stream
that the browser reset while it had a gap, has no wait: its bytes are counted as incomplete.

Not measured: waits for QPACK's dynamic table (RFC 9204 section 2.1.2), through which a loss on one stream may block
headers on others over QUIC (over TCP, the same waits for HPACK are included, since everything is delivered in order);
waits for the keys of QUIC packets that arrived before their keys (RFC 9001 section 5.7); requests at the servers' end;
and the browser's handling of the data afterwards.
"""

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from base.errors import EyelevelError
from measure.captures.streams import is_request_stream
from studies.packets.connections import by_connection
from studies.packets.dissection import Capture, ConnectionKey, PacketRecord
from studies.packets.extents import EVERY_STREAM, Extent, Record

# The causes of waiting, in the order in which they apply; FRONT is the upper bound of head-of-line blocking.
STREAM, RECORD, OTHERS, FRONT = "stream", "record", "others", "front"
CAUSES = (STREAM, RECORD, OTHERS)


@dataclass(frozen=True)
class Arrival:
    """The arrival of the bytes of `extent` at `at_s`."""

    at_s: float
    extent: Extent


@dataclass(frozen=True)
class Delivery:
    """Bytes of one stream that arrived together, and their times in s since 1970, as the module defines them."""

    stream: int
    bytes: int
    arrival_s: float
    stream_s: float
    record_s: float
    front_s: float

    @property
    def delivery_s(self) -> float:
        """The earliest time at which the browser could read the bytes."""
        return max(self.record_s, self.front_s)

    def wait(self, cause: str) -> tuple[float, float]:
        """The start and end of the wait for `cause`, one of `CAUSES` or FRONT; both are equal if there was no wait."""
        return {
            STREAM: (self.arrival_s, self.stream_s),
            RECORD: (self.stream_s, self.record_s),
            OTHERS: (self.record_s, self.delivery_s),
            FRONT: (self.stream_s, self.front_s),
        }[cause]


@dataclass(frozen=True)
class Blocking:
    """The deliveries of one connection, and the number of gaps. Deliveries are in the order of their sequence numbers;
    those of QUIC stream by stream."""

    deliveries: tuple[Delivery, ...]
    gaps: int


def blocking(capture: Capture) -> dict[ConnectionKey, Blocking]:
    """The deliveries and gaps of each connection in a capture at the browser's end.

    The time of an event that never happened is infinite. Raises EyelevelError if the number of bytes with
    times is not that of the dissection.
    """
    result = {}
    for connection, packets in by_connection(capture).items():
        arrivals, records = _arrivals(packets), capture.records.get(connection)
        one = in_sequence(arrivals, records) if records is not None else by_stream(arrivals)
        arrived_bytes = sum(delivery.bytes for delivery in one.deliveries)
        dissected_bytes = sum(packet.content_bytes for packet in packets if packet.from_server)
        if arrived_bytes != dissected_bytes:
            text = f"{dissected_bytes} bytes of HTTP's streams were dissected, but {arrived_bytes} have times"
            raise EyelevelError(f"on the connection of {connection}, {text}")
        result[connection] = one
    return result


def blocking_in_one_sequence(client: Capture, servers: Capture) -> dict[ConnectionKey, Blocking]:
    """The `blocking` of each QUIC connection if its packets had carried one sequence, as TCP's do.

    The sequence has the order in which the server sent each byte for the first time, according to the capture at its
    end; bytes that are sent again fill their old gap. The sequence has no records, so `others` and `front` are equal:
    they are the blocking that the packets of this load would have caused in one sequence. Bytes that never arrived
    block nothing.
    """
    sent = by_connection(servers)
    return {
        connection: in_one_sequence(_arrivals(packets), _arrivals(sent.get(connection, ())))
        for connection, packets in by_connection(client).items()
        if connection not in client.records
    }


def in_sequence(arrivals: Sequence[Arrival], records: Iterable[Record]) -> Blocking:
    """The deliveries of TCP's sequence, which consists of `records`; its parts arrived in the order of `arrivals`.

    The time of an event that never happened is infinite.
    """
    first = _FirstTimes(arrivals)
    units = (
        [
            (extent.stream, end - start, at_s)
            for extent in record.extents
            for start, end, at_s in first.tiles(extent.start, extent.end)
        ]
        for record in records
    )
    return Blocking(_deliveries(units), _gaps(arrival.extent for arrival in arrivals))


def by_stream(arrivals: Iterable[Arrival]) -> Blocking:
    """The deliveries of QUIC's streams, whose parts arrived in the order of `arrivals`.

    The time of an event that never happened is infinite.
    """
    deliveries: list[Delivery] = []
    gaps = 0
    for stream, of_stream in _by_stream(arrivals).items():
        gaps += _gaps(arrival.extent for arrival in of_stream)
        if is_request_stream(stream):
            tiles = _FirstTimes(of_stream).tiles(0, _end(of_stream))
            deliveries += _deliveries([(stream, end - start, at_s)] for start, end, at_s in tiles)
    return Blocking(tuple(deliveries), gaps)


def in_one_sequence(arrivals: Iterable[Arrival], sendings: Iterable[Arrival]) -> Blocking:
    """The deliveries of QUIC's streams as if they were one sequence, in the order in which `sendings` left the
    server."""
    arrivals_of = _by_stream(arrivals)
    # Times cannot order the parts of one packet, so numbers do.
    in_order = (Arrival(number, sending.extent) for number, sending in enumerate(sendings))
    pieces = []
    for stream, of_stream in _by_stream(in_order).items():
        first = _FirstTimes(arrivals_of.get(stream, ()))
        for start, end, number in _FirstTimes(of_stream).tiles(0, _end(of_stream)):
            pieces += [(number, begin, stop, stream, at_s) for begin, stop, at_s in first.tiles(start, end)]
    units, places, incomplete, at = [], [], set(), 0
    for _, start, end, stream, at_s in sorted(pieces):
        if at_s == math.inf:
            incomplete.add(stream)
        if stream not in incomplete:
            units.append([(stream if is_request_stream(stream) else None, end - start, at_s)])
            places.append((at_s, Extent(None, at, at := at + end - start)))
    in_order_of_arrival = sorted(places, key=lambda place: place[0])
    return Blocking(_deliveries(units), _gaps(extent for _, extent in in_order_of_arrival))


def measures(blockings: Iterable[Blocking], begin_s: float = -math.inf, end_s: float = math.inf) -> dict[str, float]:
    """The waits of a load, over its connections, from `begin_s` to `end_s` (s since 1970).

    `content_bytes`: the bytes that arrived before the end, once each; `incomplete_bytes`: those of them that were never
    delivered, and are left out below. `gaps`: the gaps in the whole capture. For each of `CAUSES` and FRONT, under
    names like `others_bytes`:

    _bytes         the bytes that waited for this cause
    _byte_s        bytes times seconds
    _ms            the time in which at least one byte waited, on any connection
    _longest_ms    the longest wait of a byte
    _median_ms     the median wait of the bytes that waited; NaN if none did
    _mean_ms       the mean wait of all bytes that were delivered; NaN if none were
    """
    blockings = list(blockings)
    arrivals = [one for connection in blockings for one in connection.deliveries if one.arrival_s < end_s]
    deliveries = [one for one in arrivals if one.delivery_s < math.inf]
    all_bytes, complete_bytes = (sum(one.bytes for one in several) for several in (arrivals, deliveries))
    result: dict[str, float] = {
        "content_bytes": all_bytes,
        "incomplete_bytes": all_bytes - complete_bytes,
        "gaps": sum(connection.gaps for connection in blockings),
    }
    for cause in (*CAUSES, FRONT):
        spans = ((*one.wait(cause), one.bytes) for one in deliveries)
        clipped = ((max(start, begin_s), min(end, end_s), size) for start, end, size in spans)
        waits = [(start, end, size) for start, end, size in clipped if end > start]
        byte_s = sum(size * (end - start) for start, end, size in waits)
        result |= {
            f"{cause}_bytes": sum(size for _, _, size in waits),
            f"{cause}_byte_s": byte_s,
            f"{cause}_ms": 1e3 * sum(end - start for start, end in union((start, end) for start, end, _ in waits)),
            f"{cause}_longest_ms": 1e3 * max((end - start for start, end, _ in waits), default=0.0),
            f"{cause}_median_ms": 1e3 * _weighted_median((end - start, size) for start, end, size in waits),
            f"{cause}_mean_ms": 1e3 * byte_s / complete_bytes if complete_bytes else math.nan,
        }
    return result


def union(spans: Iterable[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """The times that `spans` cover together, as separate spans in order."""
    start, end = math.inf, -math.inf
    for begin, stop in sorted(spans):
        if begin > end:
            if end > start:
                yield start, end
            start, end = begin, stop
        end = max(end, stop)
    if end > start:
        yield start, end


# Bytes of a sequence that arrived together: their stream, their number, and their time.
_Part = tuple[int | None, int, float]


def _deliveries(units: Iterable[Sequence[_Part]]) -> tuple[Delivery, ...]:
    """The deliveries of a sequence that consists of `units`; a unit is useless until all its parts have arrived."""
    deliveries = []
    front_s = -math.inf
    of_stream_s: dict[int | None, float] = defaultdict(lambda: -math.inf)
    for unit in units:
        unit_s = max((at_s for _, _, at_s in unit), default=-math.inf)
        for stream, size, arrival_s in unit:
            front_s = max(front_s, arrival_s)
            of_stream_s[stream] = max(of_stream_s[stream], arrival_s)
            if stream is not None and stream != EVERY_STREAM and arrival_s < math.inf:
                stream_s = max(of_stream_s[stream], of_stream_s[EVERY_STREAM])
                deliveries.append(Delivery(stream, size, arrival_s, stream_s, max(stream_s, unit_s), front_s))
    return tuple(deliveries)


class _FirstTimes:
    """When each byte of a sequence arrived for the first time."""

    def __init__(self, arrivals: Iterable[Arrival]) -> None:
        self._starts: list[int] = []
        self._parts: list[tuple[int, int, float]] = []
        for arrival in arrivals:
            for start, end, at_s in list(self.tiles(arrival.extent.start, arrival.extent.end)):
                if at_s == math.inf:
                    place = bisect_left(self._starts, start)
                    self._starts.insert(place, start)
                    self._parts.insert(place, (start, end, arrival.at_s))

    def tiles(self, start: int, end: int) -> Iterator[tuple[int, int, float]]:
        """The range from `start` to `end`, in parts with one time each; the time of parts that have not arrived is
        infinite."""
        place = max(0, bisect_right(self._starts, start) - 1)
        while start < end:
            first, last, at_s = self._parts[place] if place < len(self._parts) else (end, end, math.inf)
            if first > start:
                yield start, min(first, end), math.inf
            if last > start and first < end:
                yield max(first, start), min(last, end), at_s
            start, place = max(start, last), place + 1


def _arrivals(packets: Iterable[PacketRecord]) -> list[Arrival]:
    """The bytes that the server sent, with the times at which they passed."""
    return [Arrival(packet.at_s, extent) for packet in packets if packet.from_server for extent in packet.carries]


def _by_stream(arrivals: Iterable[Arrival]) -> dict[int, list[Arrival]]:
    result: dict[int, list[Arrival]] = defaultdict(list)
    for arrival in arrivals:
        if arrival.extent.stream is not None:
            result[arrival.extent.stream].append(arrival)
    return result


def _end(arrivals: Iterable[Arrival]) -> int:
    return max((arrival.extent.end for arrival in arrivals), default=0)


def _gaps(extents: Iterable[Extent]) -> int:
    """How often data arrived beyond the highest byte so far."""
    highest = gaps = 0
    for extent in extents:
        gaps += extent.start > highest
        highest = max(highest, extent.end)
    return gaps


def _weighted_median(values: Iterable[tuple[float, int]]) -> float:
    """The smallest value such that at least half of the weight is at or below it; NaN without values."""
    ordered = sorted(values)
    half = sum(weight for _, weight in ordered) / 2
    total = 0
    for value, weight in ordered:
        total += weight
        if total >= half:
            return value
    return math.nan
