"""A capture as a list of packets, each taken apart to the last byte. tshark decrypts it.

Its answer is read twice: first what the streams consist of, then which part of them each packet carries; a message
may begin in one packet and be understood in a later one.
"""

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from base.errors import EyelevelError
from measure.captures.reading import HTTPS_PORT, UDP_HEADER_BYTES, tshark_output
from studies.packets.bytes import (
    ACKNOWLEDGING,
    AGAIN,
    CONTROL,
    FRAMING,
    HANDSHAKE,
    IP,
    OTHER,
    PADDING,
    SECURITY,
    TRANSPORT,
    UNREAD,
    Piece,
    Stream,
    counted,
)
from studies.packets.layers import (
    HTTP2_PREFACE_BYTES,
    TLS_MESSAGES,
    Assembly,
    lay_http2,
    lay_http3,
)

# RFC 8446 section 5: a record's header; its content type and its tag behind what is encrypted.
RECORD_HEADER_BYTES, CONTENT_TYPE_BYTES, TAG_BYTES = 5, 1, 16
CHANGE_CIPHER_SPEC, ALERT, HANDSHAKE_RECORD, APPLICATION_DATA = 20, 21, 22, 23
FIN, SYN, RST = 0x01, 0x02, 0x04
# RFC 9000 section 19.
PADDING_FRAME, ACK_FRAMES, CRYPTO_FRAME, STREAM_FRAMES, CLOSE_FRAMES = 0, (2, 3), 6, range(8, 16), (0x1C, 0x1D)
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
PADDED = "PADDING"
UNREMARKABLE = (PADDED, "PING", "ACK", "QPACK")
# Of more handshake messages in a row the first and the last are told.
MESSAGES_TOLD = 2
LONG_PACKETS = ("Initial", "0-RTT", "Handshake", "Retry")
SHORT_PACKET = "1-RTT"

# Packets may come in another order than they were sent in; and both protocols are at home on this port only.
OPTIONS = ("-o", "tcp.reassemble_out_of_order:TRUE", "-d", f"udp.port=={HTTPS_PORT},quic", "-T", "pdml")

# A connection, as both ends know it: the server's address, and the client's port.
Connection = tuple[str, int]


@dataclass(frozen=True)
class Packet:
    """One packet: when it passed (s since 1970), of which connection it is, if any, and in which direction.

    `kinds` are its bytes by kind, and add up to `bytes`. `lines` name what it carries, each packet of QUIC in it on a
    line of its own; `messages` are those with content that was not sent before. `closes`: whether it says that the
    connection ends. `mark` tells it from all others at the other end, where it is the same.
    """

    at_s: float
    connection: Connection | None
    from_server: bool
    bytes: int
    udp_payload_bytes: int = 0
    kinds: dict[str, int] = field(default_factory=dict)
    lines: tuple[str, ...] = ()
    messages: frozenset[str] = frozenset()
    closes: bool = False
    mark: tuple[str, ...] = ()


@dataclass(frozen=True)
class Capture:
    """Every packet that passed one end, in order, and which host each connection was made for."""

    packets: tuple[Packet, ...]
    hosts: dict[Connection, str]


def read_capture(capture: Path, keys: Path) -> Capture:
    """What is in `capture`, decrypted with `keys` (NSS key log). Raises EyelevelError."""
    reader, broken = _Reader(), None
    with tshark_output(capture, keys, *OPTIONS) as output:
        try:
            for _, element in ElementTree.iterparse(output):
                if element.tag == "packet":
                    reader.add(element)
                    element.clear()
        except ElementTree.ParseError as error:  # tshark itself can say better what is wrong, at the end
            broken = error
    if broken:
        raise EyelevelError(f"what tshark says of {capture} breaks off: {broken}")
    try:
        return Capture(reader.packets(), reader.hosts)
    except EyelevelError as error:
        raise EyelevelError(f"{capture}: {error}") from None


# The stream once it is known, where in it a packet's part begins, and its size.
_InStream = tuple[Callable[[], Stream], int, int]


@dataclass
class _Part:
    """A part of a packet: bytes of a known kind, or those of a stream from `start` on."""

    bytes: int
    kind: str = ""
    label: str = ""
    stream: Callable[[], Stream] | None = None
    start: int = 0
    line: int = 0


@dataclass
class _Raw:
    """A packet before its streams are known. `lines` are its QUIC packets' names, or one that is empty."""

    packet: Packet
    parts: list[_Part]
    lines: list[str]
    bare: str = ""


class _TcpStream:
    """One direction of a TCP connection: TLS records, and within them HTTP/2, both in order."""

    def __init__(self) -> None:
        self._records: list[tuple[int, int, list[tuple[int, str]]]] = []
        self._frames: list[tuple[int, int, int]] = []
        self._preface_bytes = 0
        self._laid: Stream | None = None

    def record(self, element: ElementTree.Element) -> None:
        """The next TLS record."""
        length = int(_value(element, "tls.record.length") or 0)
        content = int(_value(element, "tls.record.content_type") or APPLICATION_DATA)
        encrypted = _value(element, "tls.record.opaque_type") is not None or content == APPLICATION_DATA
        self._records.append((length, content if encrypted else -content, list(_tls_messages(element))))

    def frame(self, element: ElementTree.Element) -> None:
        """The next frame of HTTP/2, or the preface."""
        if _value(element, "http2.magic") is not None:
            self._preface_bytes = HTTP2_PREFACE_BYTES
        elif (length := _value(element, "http2.length")) is not None:
            padding_bytes = int(_value(element, "http2.pad_length") or 0)
            padded = int(_value(element, "http2.flags") or "0", 16) & 0x08 and padding_bytes
            frame_type = int(_value(element, "http2.type") or -1)
            self._frames.append((int(length), frame_type, padding_bytes + 1 if padded else 0))

    def laid(self) -> Stream:
        """The stream, once all of it is known."""
        if self._laid:
            return self._laid
        inner = Stream()
        inner.lay(self._preface_bytes, FRAMING, "preface")
        for frame in self._frames:
            lay_http2(inner, *frame)
        outer, carried_bytes = Stream(), 0
        for length, content, messages in self._records:
            outer.lay(RECORD_HEADER_BYTES, SECURITY)
            behind_bytes = CONTENT_TYPE_BYTES + TAG_BYTES if content > 0 else 0
            inside_bytes = max(0, length - behind_bytes)
            if abs(content) == APPLICATION_DATA:
                for piece in inner.take(carried_bytes, carried_bytes + inside_bytes):
                    outer.lay(piece.bytes, piece.kind, piece.label)
                carried_bytes += inside_bytes
            elif abs(content) == HANDSHAKE_RECORD:
                for size, name in messages:
                    outer.lay(min(size, inside_bytes), HANDSHAKE, name)
                    inside_bytes -= min(size, inside_bytes)
                outer.lay(inside_bytes, HANDSHAKE, messages[-1][1] if messages else "")
            else:
                name = {CHANGE_CIPHER_SPEC: "ChangeCipherSpec", ALERT: "Alert"}.get(abs(content), "")
                outer.lay(inside_bytes, HANDSHAKE if name == "ChangeCipherSpec" else CONTROL, name)
            outer.lay(min(behind_bytes, length), SECURITY)
        self._laid = outer
        return outer


class _Reader:
    """Takes tshark's packets one by one, and gives all of them when their streams are known."""

    def __init__(self) -> None:
        self.hosts: dict[Connection, str] = {}
        self._raw: list[_Raw] = []
        self._tcp: dict[tuple[Connection, bool], _TcpStream] = {}
        self._handshakes: dict[tuple[Connection, bool, str], Stream] = {}
        self._streams: dict[tuple[Connection, bool, int], Assembly] = {}

    def add(self, packet: ElementTree.Element) -> None:
        """The next packet of the capture."""
        protos: dict[str, list[ElementTree.Element]] = {}
        for proto in packet.findall("proto"):
            protos.setdefault(proto.get("name", ""), []).append(proto)
        frame = protos["frame"][0]
        at_s, size = float(_value(frame, "frame.time_epoch") or 0), int(_value(frame, "frame.len") or 0)
        transport = next((name for name in ("tcp", "udp") if name in protos and "ip" in protos), None)
        ports = [_value(protos[transport][0], f"{transport}.{end}port") for end in ("src", "dst")] if transport else []
        if not transport or HTTPS_PORT not in ports:
            self._raw.append(_Raw(Packet(at_s, None, False, size), [_Part(size, OTHER)], []))
            return
        from_server = ports[0] == HTTPS_PORT
        ip = protos["ip"][0]
        server = _value(ip, "ip.src" if from_server else "ip.dst") or ""
        connection = (server, int(ports[1 if from_server else 0] or 0))
        parts = [_Part(int(_value(ip, "ip.hdr_len") or 0), IP)]
        bare = Packet(at_s, connection, from_server, size)
        raw = (self._tcp_packet if transport == "tcp" else self._quic_packet)(bare, parts, protos)
        for host in _inside([packet], "tls.handshake.extensions_server_name"):
            self.hosts.setdefault(connection, host.get("show", ""))
        # What no header tells of.
        raw.parts.append(_Part(size - sum(part.bytes for part in raw.parts), UNREAD))
        self._raw.append(raw)

    def packets(self) -> tuple[Packet, ...]:
        """All packets. Raises EyelevelError when one was not understood."""
        return tuple(self._resolved(raw) for raw in self._raw)

    def _tcp_packet(self, bare: Packet, parts: list[_Part], protos: dict[str, list[ElementTree.Element]]) -> _Raw:
        assert bare.connection
        tcp = protos["tcp"][0]
        flags, length = int(_value(tcp, "tcp.flags") or "0", 16), int(_value(tcp, "tcp.len") or 0)
        stream = self._tcp.setdefault((bare.connection, bare.from_server), _TcpStream())
        for record in _inside(protos.get("tls", ()), "tls.record"):
            stream.record(record)
        for frame in _inside(protos.get("http2", ()), "http2.stream"):
            stream.frame(frame)
        parts.append(_Part(int(_value(tcp, "tcp.hdr_len") or 0), TRANSPORT))
        start = int(_value(tcp, "tcp.seq") or 0) - (0 if flags & SYN else 1)
        if length:
            parts.append(_Part(length, stream=stream.laid, start=start))
        names = [name for bit, name in ((SYN, "SYN"), (FIN, "FIN"), (RST, "RST")) if flags & bit]
        if not names and not length:
            names = ["ACK"]
            for part in parts:
                part.kind = ACKNOWLEDGING
        elif names == ["SYN"] and bare.from_server:
            names = ["SYN, ACK"]
        told = ("tcp.seq_raw", "tcp.ack_raw", "tcp.flags", "tcp.len", "tcp.options.timestamp.tsval")
        mark = tuple(_value(tcp, name) or "" for name in told)
        packet = replace(bare, mark=mark, closes=bool(flags & (FIN | RST)))
        return _Raw(packet, parts, [""], bare=", ".join(names))

    def _quic_packet(self, bare: Packet, parts: list[_Part], protos: dict[str, list[ElementTree.Element]]) -> _Raw:
        lines, closes, types = [], False, set()
        parts.append(_Part(UDP_HEADER_BYTES, TRANSPORT))
        for line, quic in enumerate(protos.get("quic", ())):
            size = int(quic.get("size", 0))
            lines.append(_quic_name(quic))
            payload = next(_inside([quic], "quic.payload", "quic.protected_payload"), None)
            payload_bytes = int(payload.get("size", 0)) if payload is not None else 0
            frames = [frame for frame in quic.findall("field") if frame.get("name") == "quic.frame"]
            frames_bytes = sum(int(frame.get("size", 0)) for frame in frames)
            tag_bytes = TAG_BYTES if frames_bytes + TAG_BYTES == payload_bytes else 0
            parts.append(_Part(size - payload_bytes + tag_bytes, SECURITY, line=line))
            for frame in frames:
                frame_type = int(_value(frame, "quic.frame_type") or -1)
                types.add(frame_type)
                closes |= frame_type in CLOSE_FRAMES
                parts += self._quic_frame(bare, frame, frame_type, lines[-1], line)
            parts.append(_Part(payload_bytes - frames_bytes - tag_bytes, UNREAD, line=line))
        udp = protos["udp"][0]
        if types and types <= {PADDING_FRAME, *ACK_FRAMES}:
            for part in parts:
                part.kind = ACKNOWLEDGING if part.kind in (IP, TRANSPORT, SECURITY) else part.kind
        mark = (_value(udp, "udp.payload") or "",)
        payload_bytes = int(_value(udp, "udp.length") or 0) - UDP_HEADER_BYTES
        return _Raw(replace(bare, mark=mark, closes=closes, udp_payload_bytes=payload_bytes), parts, lines)

    def _quic_frame(
        self, bare: Packet, frame: ElementTree.Element, frame_type: int, space: str, line: int
    ) -> Iterator[_Part]:
        assert bare.connection
        size = int(frame.get("size", 0))
        if frame_type == PADDING_FRAME:
            yield _Part(size, PADDING, PADDED, line=line)
        elif frame_type in ACK_FRAMES:
            yield _Part(size, ACKNOWLEDGING, "ACK", line=line)
        elif frame_type == CRYPTO_FRAME or frame_type in STREAM_FRAMES:
            stream, start, content_bytes = (self._crypto if frame_type == CRYPTO_FRAME else self._http3)(
                bare, frame, space
            )
            yield _Part(size - content_bytes, FRAMING, line=line)
            yield _Part(content_bytes, stream=stream, start=start, line=line)
        else:
            yield _Part(size, CONTROL, QUIC_FRAMES.get(frame_type, f"frame {frame_type:#x}"), line=line)

    def _crypto(self, bare: Packet, frame: ElementTree.Element, space: str) -> _InStream:
        """Where a CRYPTO frame's content lies, and how large it is; tshark tells its messages as they are complete."""
        assert bare.connection
        stream = self._handshakes.setdefault((bare.connection, bare.from_server, space), Stream())
        for size, name in _tls_messages(frame):
            stream.lay(size, HANDSHAKE, name)
        content_bytes = int(_value(frame, "quic.crypto.length") or 0)
        return (lambda: stream), int(_value(frame, "quic.crypto.offset") or 0), content_bytes

    def _http3(self, bare: Packet, frame: ElementTree.Element, _: str) -> _InStream:
        """Where a STREAM frame's content lies, and how large it is."""
        assert bare.connection
        number, offset = int(_value(frame, "quic.stream.stream_id") or 0), int(_value(frame, "quic.stream.offset") or 0)
        inside = next(_inside([frame], "quic.stream_data"), None)
        data = bytes.fromhex(inside.get("value", "")) if inside is not None else b""
        assembly = self._streams.setdefault((bare.connection, bare.from_server, number), Assembly())
        assembly.add(offset, data)
        return partial(assembly.laid, partial(lay_http3, stream_id=number)), offset, len(data)

    def _resolved(self, raw: _Raw) -> Packet:
        """The packet with every part told by its kind."""
        pieces: list[tuple[int, Piece]] = []
        for part in raw.parts:
            taken = (
                part.stream().take(part.start, part.start + part.bytes)
                if part.stream
                else [Piece(part.kind, part.bytes, part.label)]
            )
            pieces += [(part.line, piece) for piece in taken if piece.bytes]
        lines = []
        for number, space in enumerate(raw.lines):
            words = _words(piece for line, piece in pieces if line == number)
            lines.append(
                ": ".join(word for word in (space, ", ".join(word for word in (raw.bare, words) if word)) if word)
            )
        kinds = {kind: size for kind, size in counted(piece for _, piece in pieces).items() if size}
        if sum(kinds.values()) != raw.packet.bytes or min(kinds.values()) < 0:
            raise EyelevelError(f"a packet of {raw.packet.bytes} bytes was taken apart into {kinds}")
        new = {piece.label for _, piece in pieces if piece.label and piece.kind != AGAIN}
        return replace(raw.packet, kinds=kinds, lines=tuple(lines), messages=frozenset(new))


def _words(pieces: Iterable[Piece]) -> str:
    """What a (QUIC) packet carries: its messages; what is in nearly every packet only where there is nothing else, and
    padding where it is the most."""
    pieces = list(pieces)
    labels = dict.fromkeys(f"{p.label} again" if p.kind == AGAIN else p.label for p in pieces if p.label)
    telling = [label for label in labels if label not in UNREMARKABLE] or [label for label in labels if label != PADDED]
    tls = [label for label in telling if label in (*TLS_MESSAGES.values(), "ChangeCipherSpec")]
    if len(tls) > MESSAGES_TOLD:
        telling = [f"{tls[0]} … {tls[-1]}", *(label for label in telling if label not in tls)]
    padding_bytes = sum(piece.bytes for piece in pieces if piece.kind == PADDING)
    mostly_padding = 2 * padding_bytes > sum(piece.bytes for piece in pieces)
    return ", ".join([*telling, *([PADDED] if mostly_padding else [])])


def _quic_name(quic: ElementTree.Element) -> str:
    """What kind of QUIC packet it is (RFC 9000 section 17)."""
    kind = _value(quic, "quic.long.packet_type")
    return LONG_PACKETS[int(kind)] if kind is not None else SHORT_PACKET


def _tls_messages(element: ElementTree.Element) -> Iterator[tuple[int, str]]:
    """The handshake messages, or fragments of them, that tshark found within: how large each is, and its name."""
    for message in _inside([element], "tls.handshake"):
        told = message.get("showname", "").partition(": ")[2].partition(" (")[0].replace(" ", "")
        kind = _value(message, "tls.handshake.type")
        yield int(message.get("size", 0)), TLS_MESSAGES.get(int(kind), f"handshake {kind}") if kind else told


def _inside(elements: Iterable[ElementTree.Element], *names: str) -> Iterator[ElementTree.Element]:
    """The fields of these names, wherever within."""
    return (field for element in elements for field in element.iter("field") if field.get("name") in names)


def _value(element: ElementTree.Element, name: str) -> str | None:
    """What the first field `name` within `element` shows."""
    return next((field.get("show") for field in element.iter("field") if field.get("name") == name), None)
