"""Which bytes of which stream each packet carried, computed from tshark's list."""

from collections.abc import Mapping

import pytest

from measure.captures.reading import FIELDS, CapturedConnection, CapturedPacket
from measure.captures.streams import STREAM_FIELDS, CarriedBytes, carried, longest_record_bytes, requests


def packet(at_s: float, payload_bytes: int, fields: Mapping[str, str], *, from_server: bool = True) -> CapturedPacket:
    listed = {name: text.split(",") if (text := fields.get(name, "")) else [] for name in (*FIELDS, *STREAM_FIELDS)}
    return CapturedPacket(at_s, from_server, payload_bytes, listed)


def tcp(at_s: float, seq: int, length: int, records: str = "", types: str = "", frames: str = "") -> CapturedPacket:
    """A segment sent by the server; `frames` lists its HTTP/2 frames as stream:length."""
    pairs = [frame.partition(":") for frame in frames.split(",") if frame]
    fields = {
        "tcp.seq": str(seq),
        "tls.record.length": records,
        "tls.record.content_type": types,
        "http2.streamid": ",".join(stream for stream, _, _ in pairs),
        "http2.length": ",".join(size for _, _, size in pairs),
    }
    return packet(at_s, length, fields)


def test_frames_of_http2_are_found_in_records_that_are_complete_only_packets_later() -> None:
    # The first record is a handshake of 100 bytes. The second has two frames: 291 bytes of stream 1 and 191 of stream
    # 3. With the frames' headers, these are 500 bytes; with the record's type and tag, 517; with its header, 522. The
    # first packet ends 222 bytes into the second record.
    connection = CapturedConnection(
        "h2",
        (
            tcp(1.0, 1, 105 + 222, "100", "22"),
            tcp(2.0, 1 + 327, 300, "517", "23", "1:291,3:191"),
            tcp(3.0, 1 + 327, 300),  # the same again
        ),
    )
    assert carried(connection) == [CarriedBytes(1.0, 1, 217), CarriedBytes(2.0, 1, 83), CarriedBytes(2.0, 3, 200)]
    # The handshake's records do not count.
    assert longest_record_bytes(connection) == 500


# The flags as printed by tshark 4.0 and 4.4.
@pytest.mark.parametrize("flags", [{"0": "0", "1": "1"}, {"0": "False", "1": "True"}])
def test_stream_frames_of_quic_are_counted_once(flags: Mapping[str, str]) -> None:
    def quic(at_s: float, stream: str, off: str, has: str, offset: str, length: str, data: str) -> CapturedPacket:
        names = ("stream_id", "off", "len", "offset", "length")
        off, has = (",".join(flags[flag] for flag in listed.split(",")) for listed in (off, has))
        values = zip(names, (stream, off, has, offset, length), strict=True)
        return packet(at_s, 1250, {f"quic.stream.{name}": value for name, value in values} | {"quic.stream_data": data})

    connection = CapturedConnection(
        "h3",
        (
            quic(
                1.0, "0,4", "0,0", "1,0", "", "3", f"{'aa' * 3},{'bb' * 5}"
            ),  # the last frame of a packet may lack its length
            quic(2.0, "4,3", "1,0", "1,0", "5", "7", f"{'bb' * 7},{'cc' * 9}"),  # stream 3 carries no request
            quic(3.0, "4", "1", "0", "3", "", "bb" * 10),  # 9 of these bytes are repeated
        ),
    )
    assert carried(connection) == [
        CarriedBytes(1.0, 0, 3),
        CarriedBytes(1.0, 4, 5),
        CarriedBytes(2.0, 4, 7),
        CarriedBytes(3.0, 4, 1),
    ]


def test_requests_are_what_clients_send_headers_or_open_streams_for() -> None:
    over_tcp = (
        packet(1.0, 90, {"http2.streamid": "0,1", "http2.type": "4,1"}, from_server=False),
        packet(2.0, 90, {"http2.streamid": "1,3", "http2.type": "8,1"}, from_server=False),
        packet(3.0, 90, {"http2.streamid": "5", "http2.type": "1"}),
    )
    assert requests(CapturedConnection("h2", over_tcp)) == {1: 1.0, 3: 2.0}
    over_quic = (
        packet(1.0, 90, {"quic.stream.stream_id": "2,0"}, from_server=False),
        packet(2.0, 90, {"quic.stream.stream_id": "0,4"}, from_server=False),
    )
    assert requests(CapturedConnection("h3", over_quic)) == {0: 1.0, 4: 2.0}
