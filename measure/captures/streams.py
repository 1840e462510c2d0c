"""The bytes of each HTTP stream in each packet of a server, from a decrypted capture at the server's end.

A stream's bytes are its HEADERS and DATA frames, including frame headers. The headers of TLS and QUIC belong to no
stream.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from measure.captures.byte_stream import ByteStream
from measure.captures.reading import HEADERS_FRAME, CapturedConnection, CapturedPacket

# The fields of each packet that are needed in addition to `measure.captures.reading.FIELDS`.
STREAM_FIELDS = (
    "tcp.seq",
    "tls.record.length",
    "tls.record.content_type",
    "http2.streamid",
    "http2.length",
    "quic.stream.off",
    "quic.stream.len",
    "quic.stream.offset",
    "quic.stream.length",
    "quic.stream_data",
)
# RFC 9113 section 4.1; RFC 8446 sections 5.1 and 5.2. The trailer is the type and the tag at the end of an encrypted
# record.
HTTP2_FRAME_HEADER_BYTES = 9
RECORD_HEADER_BYTES, RECORD_TRAILER_BYTES = 5, 17
APPLICATION_DATA = "23"
# A set flag as tshark prints it: a number up to 4.0 (Debian 12), a word in 4.4 (Debian 13).
TRUE = ("1", "True")
# HTTP/2's stream for the connection itself.
CONNECTION = 0


@dataclass(frozen=True)
class CarriedBytes:
    """The number of bytes of a stream that a packet carried for the first time, and when the packet left (s since
    1970)."""

    at_s: float
    stream: int
    bytes: int


def is_request_stream(number: int) -> bool:
    """Whether a stream of QUIC carries a request and its response (RFC 9000 section 2.1, RFC 9114 section 6.1)."""
    return number % 4 == 0


def carried(connection: CapturedConnection) -> list[CarriedBytes]:
    """The bytes that the server sent of each stream, in the order in which they left.

    `connection` must have been read with `STREAM_FIELDS`.
    """
    parts = _over_tcp(connection) if connection.http_version == "h2" else _over_quic(connection)
    sent: dict[int, int] = {}
    result = []
    for at_s, stream, start, end in parts:
        # A stream's bytes are first sent in order; bytes before the furthest one are retransmissions.
        new = end - max(start, sent.get(stream, 0))
        if new > 0:
            sent[stream] = end
            result.append(CarriedBytes(at_s, stream, new))
    return result


def requests(connection: CapturedConnection) -> dict[int, float]:
    """Stream → when its request came in at the server (s since 1970)."""
    arrivals: dict[int, float] = {}
    for packet in connection.packets:
        if not packet.from_server:
            for stream in _requested(packet, connection.http_version):
                arrivals.setdefault(stream, packet.at_s)
    return arrivals


def _requested(packet: CapturedPacket, http_version: str) -> list[int]:
    """The streams whose requests a packet from the client carries."""
    if http_version == "h3":
        return [number for text in packet.fields["quic.stream.stream_id"] if is_request_stream(number := int(text))]
    frames = zip(packet.fields["http2.streamid"], packet.fields["http2.type"], strict=False)
    return [int(stream) for stream, kind in frames if kind == HEADERS_FRAME]


# A part of a stream: when it left, the stream, and the positions of its begin and end.
_Part = tuple[float, int, int, int]


def _over_quic(connection: CapturedConnection) -> Iterator[_Part]:
    for packet in connection.packets:
        if packet.from_server:
            yield from ((packet.at_s, *frame) for frame in _stream_frames(packet) if is_request_stream(frame[0]))


def _stream_frames(packet: CapturedPacket) -> Iterator[tuple[int, int, int]]:
    """Each STREAM frame (RFC 9000 section 19.8): stream, first byte, end. tshark lists only the fields that frames
    have."""
    fields = packet.fields
    offsets, lengths = iter(fields["quic.stream.offset"]), iter(fields["quic.stream.length"])
    flags = zip(fields["quic.stream.stream_id"], fields["quic.stream.off"], fields["quic.stream.len"], strict=True)
    for stream, has_offset, has_length in flags:
        start = int(next(offsets)) if has_offset in TRUE else 0
        # A frame without a length extends to the end of its packet.
        length = int(next(lengths)) if has_length in TRUE else len(fields["quic.stream_data"][-1]) // 2
        yield int(stream), start, start + length


def _over_tcp(connection: CapturedConnection) -> Iterator[_Part]:
    """The parts of streams over TCP. HTTP/2 frames are in TLS records, which are in the TCP stream; where each frame
    and record begins follows from the lengths of all before it."""
    outgoing = [packet for packet in connection.packets if packet.from_server]
    frames = ByteStream[int]()
    for packet in outgoing:
        for number, text in zip(packet.fields["http2.streamid"], packet.fields["http2.length"], strict=True):
            frames.append(HTTP2_FRAME_HEADER_BYTES + int(text), int(number))
    records = ByteStream[int]()
    inside = 0
    for packet in outgoing:
        for length, has_frames in _records(packet):
            records.append(RECORD_HEADER_BYTES, CONNECTION)
            content = max(0, length - RECORD_TRAILER_BYTES) if has_frames else 0
            for size, stream in frames.between(inside, inside + content):
                records.append(size, stream)
            inside += content
            records.append(length - content, CONNECTION)
    ends: dict[int, int] = {}
    furthest = 0
    for packet in outgoing:
        start = int(packet.fields["tcp.seq"][0]) - 1
        end = start + packet.payload_bytes
        for size, stream in records.between(max(start, furthest), end):
            if stream != CONNECTION:
                begin = ends.get(stream, 0)
                ends[stream] = begin + size
                yield packet.at_s, stream, begin, begin + size
        furthest = max(furthest, end)


def longest_record_bytes(connection: CapturedConnection) -> int:
    """The most HTTP/2 bytes in one TLS record of the server; 0 without any. The connection must have been read with
    STREAM_FIELDS."""
    records = (record for packet in connection.packets if packet.from_server for record in _records(packet))
    return max((length - RECORD_TRAILER_BYTES for length, has_frames in records if has_frames), default=0)


def _records(packet: CapturedPacket) -> Iterator[tuple[int, bool]]:
    """The TLS records that end in this packet: their lengths, and whether they contain HTTP/2 frames."""
    # For an encrypted record, tshark gives the type of its content.
    for length, content in zip(
        packet.fields["tls.record.length"], packet.fields["tls.record.content_type"], strict=False
    ):
        yield int(length), content == APPLICATION_DATA
