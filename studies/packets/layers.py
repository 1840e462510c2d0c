"""The messages in a stream of bytes: TLS's handshake, and frames of HTTP/2, QUIC and HTTP/3."""

import tomllib
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from measure.captures.streams import HTTP2_FRAME_HEADER_BYTES
from studies.packets.bytes import CONTROL, FRAMING, HTTP_HEADERS, PADDING, PAYLOAD, Stream

_NAMES = tomllib.loads(Path(__file__).with_name("messages.toml").read_text())
TLS_MESSAGES, HTTP2_FRAMES, HTTP3_FRAMES, QUIC_FRAMES = (
    {int(number, 0): name for number, name in _NAMES[protocol].items()}
    for protocol in ("tls", "http2", "http3", "quic")
)
FINISHED, DATA, HEADERS = "Finished", "DATA", "HEADERS"
HTTP2_PREFACE_BYTES = 24
# The types of unidirectional streams (RFC 9114 section 6.2, RFC 9204 section 4.2).
CONTROL_STREAM, QPACK_STREAMS = 0, (2, 3)


def append_http2(stream: Stream, length: int, frame_type: int, padding_bytes: int, owner: int | None = None) -> None:
    """Append a frame of HTTP/2 with `length` bytes after its header, `padding_bytes` of them padding. `owner`: the
    number of its HTTP/2 stream; None for the connection's frames."""
    name = HTTP2_FRAMES.get(frame_type, f"frame {frame_type}")
    kind = {DATA: PAYLOAD, HEADERS: HTTP_HEADERS, "CONTINUATION": HTTP_HEADERS}.get(name, CONTROL)
    stream.append(HTTP2_FRAME_HEADER_BYTES, FRAMING, name, owner)
    stream.append(length - padding_bytes, kind, name, owner)
    stream.append(padding_bytes, PADDING, owner=owner)


def append_http3(stream: Stream, data: bytes, stream_id: int) -> None:
    """Append the HTTP/3 frames (RFC 9114) in `data`, the beginning of the QUIC stream `stream_id`."""
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
    """The variable-length integer at `at`, and its end (RFC 9000 section 16); None if it is incomplete."""
    if at >= len(data):
        return None, at
    size = 1 << (data[at] >> 6)
    if at + size > len(data):
        return None, at
    return int.from_bytes(data[at : at + size]) & ((1 << (8 * size - 2)) - 1), at + size


class Assembly:
    """A stream whose parts arrive in any order; `parse` fills the stream from its data."""

    def __init__(self, parse: Callable[[Stream, bytes], None]) -> None:
        self._parse = parse
        self._parts: dict[int, bytes] = {}

    def add(self, offset: int, data: bytes) -> None:
        """Add `data`, the bytes from `offset` on."""
        if len(data) > len(self._parts.get(offset, b"")):
            self._parts[offset] = data

    @cached_property
    def stream(self) -> Stream:
        """The stream, from the data before the first gap. Read this only after all parts were added."""
        data = bytearray()
        for offset, part in sorted(self._parts.items()):
            if offset > len(data):
                break
            data[offset : offset + len(part)] = part
        stream = Stream()
        self._parse(stream, bytes(data))
        return stream
