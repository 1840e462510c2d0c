"""The messages in a stream of bytes: TLS's handshake, and frames of HTTP/2, QUIC and HTTP/3."""

from collections.abc import Callable

from studies.packets.bytes import CONTROL, FRAMING, HTTP_HEADERS, PADDING, PAYLOAD, Stream

# RFC 8446 section 4, RFC 8879.
TLS_MESSAGES = {
    1: "ClientHello",
    2: "ServerHello",
    4: "NewSessionTicket",
    5: "EndOfEarlyData",
    8: "EncryptedExtensions",
    11: "Certificate",
    15: "CertificateVerify",
    20: "Finished",
    24: "KeyUpdate",
    25: "CompressedCertificate",
}
FINISHED = TLS_MESSAGES[20]

# RFC 9113 section 6.
HTTP2_FRAMES = {
    0: "DATA",
    1: "HEADERS",
    2: "PRIORITY",
    3: "RST_STREAM",
    4: "SETTINGS",
    5: "PUSH_PROMISE",
    6: "PING",
    7: "GOAWAY",
    8: "WINDOW_UPDATE",
    9: "CONTINUATION",
    16: "PRIORITY_UPDATE",
}
DATA, HEADERS = "DATA", "HEADERS"
HTTP2_FRAME_HEADER_BYTES, HTTP2_PREFACE_BYTES = 9, 24

# RFC 9114 section 7.2, RFC 9218 section 7.2.
HTTP3_FRAMES = {
    0: DATA,
    1: HEADERS,
    3: "CANCEL_PUSH",
    4: "SETTINGS",
    5: "PUSH_PROMISE",
    7: "GOAWAY",
    13: "MAX_PUSH_ID",
    0xF0700: "PRIORITY_UPDATE",
    0xF0701: "PRIORITY_UPDATE",
}
# RFC 9114 section 6.2, RFC 9204 section 4.2.
CONTROL_STREAM, QPACK_STREAMS = 0, (2, 3)

# RFC 9000 section 19, but for PADDING, ACK, CRYPTO and STREAM.
QUIC_FRAMES = {
    1: "PING",
    4: "RESET_STREAM",
    5: "STOP_SENDING",
    7: "NEW_TOKEN",
    16: "MAX_DATA",
    17: "MAX_STREAM_DATA",
    18: "MAX_STREAMS",
    19: "MAX_STREAMS",
    20: "DATA_BLOCKED",
    21: "STREAM_DATA_BLOCKED",
    22: "STREAMS_BLOCKED",
    23: "STREAMS_BLOCKED",
    24: "NEW_CONNECTION_ID",
    25: "RETIRE_CONNECTION_ID",
    26: "PATH_CHALLENGE",
    27: "PATH_RESPONSE",
    28: "CONNECTION_CLOSE",
    29: "CONNECTION_CLOSE",
    30: "HANDSHAKE_DONE",
}


def append_http2(stream: Stream, length: int, frame_type: int, padding_bytes: int) -> None:
    """Append a frame of HTTP/2 with `length` bytes after its header, of which `padding_bytes` are padding."""
    name = HTTP2_FRAMES.get(frame_type, f"frame {frame_type}")
    kind = {DATA: PAYLOAD, HEADERS: HTTP_HEADERS, "CONTINUATION": HTTP_HEADERS}.get(name, CONTROL)
    stream.append(HTTP2_FRAME_HEADER_BYTES, FRAMING, name)
    stream.append(length - padding_bytes, kind, name)
    stream.append(padding_bytes, PADDING)


def append_http3(stream: Stream, data: bytes, stream_id: int) -> None:
    """Append the HTTP/3 frames (RFC 9114) in `data`, the beginning of QUIC's stream `stream_id`."""
    at = 0
    if stream_id & 2:  # unidirectional streams begin with their type
        kind, at = varint(data, 0)
        if kind is None:
            return
        stream.append(at, FRAMING, "")
        if kind != CONTROL_STREAM:
            stream.append(1 << 62, *((HTTP_HEADERS, "QPACK") if kind in QPACK_STREAMS else (CONTROL, "")))
            return
    while at < len(data):
        begin = at
        frame_type, at = varint(data, at)
        length, at = varint(data, at)
        if frame_type is None or length is None:
            return
        name = HTTP3_FRAMES.get(frame_type, "")
        stream.append(at - begin, FRAMING, name)
        stream.append(length, {DATA: PAYLOAD, HEADERS: HTTP_HEADERS}.get(name, CONTROL), name)
        at += length


def varint(data: bytes, at: int) -> tuple[int | None, int]:
    """The variable-length integer at `at`, and its end (RFC 9000 section 16); None when it is incomplete."""
    if at >= len(data):
        return None, at
    size = 1 << (data[at] >> 6)
    if at + size > len(data):
        return None, at
    return int.from_bytes(data[at : at + size]) & ((1 << (8 * size - 2)) - 1), at + size


class Assembly:
    """A stream whose parts arrive in any order."""

    def __init__(self) -> None:
        self._parts: dict[int, bytes] = {}
        self._stream: Stream | None = None

    def add(self, offset: int, data: bytes) -> None:
        """The bytes from `offset` on are `data`."""
        if len(data) > len(self._parts.get(offset, b"")):
            self._parts[offset] = data

    def stream(self, parse: Callable[[Stream, bytes], None]) -> Stream:
        """The stream, filled by `parse` from the data before the first gap. To be called once all parts are there."""
        if self._stream is None:
            data = bytearray()
            for offset, part in sorted(self._parts.items()):
                if offset > len(data):
                    break
                data[offset : offset + len(part)] = part
            self._stream = Stream()
            parse(self._stream, bytes(data))
        return self._stream
