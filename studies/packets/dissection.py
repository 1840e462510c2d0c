"""The packets of a capture, decrypted by tshark and each dissected to the last byte.

tshark's output is used twice: first for the contents of the streams, then for the part of these contents in each
packet, since a message that begins in one packet may become readable only with a later packet.
"""

import xml.etree.ElementTree as ElementTree
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path

from base.errors import EyelevelError
from measure.captures.reading import HTTPS_PORT, UDP_HEADER_BYTES, tshark_output
from measure.captures.streams import RECORD_HEADER_BYTES, is_request_stream
from studies.packets import bytes as kinds
from studies.packets.bytes import Piece, Stream, bytes_by_kind
from studies.packets.extents import EVERY_STREAM, Extent, Record
from studies.packets.layers import (
    FINISHED,
    HTTP2_PREFACE_BYTES,
    QUIC_FRAMES,
    TLS_MESSAGES,
    Assembly,
    append_http2,
    append_http3,
)

# RFC 8446 section 5.2: the content type and the tag at the end of an encrypted record.
CONTENT_TYPE_BYTES, TAG_BYTES = 1, 16
CHANGE_CIPHER_SPEC, ALERT, HANDSHAKE_RECORD, APPLICATION_DATA = 20, 21, 22, 23
FIN, SYN, RST = 0x01, 0x02, 0x04
# Types of frames (RFC 9000, section 19).
PADDING_FRAME, ACK_FRAMES, CRYPTO_FRAME, STREAM_FRAMES, CLOSE_FRAMES = 0, (2, 3), 6, range(8, 16), (0x1C, 0x1D)
# tshark's names of the fields of a STREAM frame (RFC 9000, section 19.8).
FRAME_FIELDS = {"frame_type", "stream.stream_id", "stream.offset", "stream.length", "stream_data"}
PADDED = "PADDING"
UNREMARKABLE = (PADDED, "PING", "ACK", "QPACK")
# If a packet has more handshake messages, only the first and the last are named.
MOST_MESSAGES = 2
LONG_PACKETS = ("Initial", "0-RTT", "Handshake", "Retry")
SHORT_PACKET = "1-RTT"
TCP_HEADER, UDP_HEADER, LONG_HEADER, SHORT_HEADER = "TCP header", "UDP header", "long header", "short header"

# TCP segments that arrived out of order are put into order, and UDP packets of this port are dissected as QUIC.
OPTIONS = ("-o", "tcp.reassemble_out_of_order:TRUE", "-d", f"udp.port=={HTTPS_PORT},quic", "-T", "pdml")

# The identity of a connection at both ends: the server's address, and the client's port.
ConnectionKey = tuple[str, int]
# A direction of a connection: the connection, and whether the packets come from the server.
_Way = tuple[ConnectionKey, bool]


@dataclass(frozen=True)
class PacketRecord:
    """One packet: when it passed (s since 1970), its connection, if any, and its direction.

    `kinds`: its bytes by kind, which add up to `bytes`. `lines`: its contents in words, with a line for each QUIC
    packet in it. `messages`: the messages with content that was not sent before. `closes`: whether it ends the
    connection. `mark`: identifies the packet, and is the same at both ends. `carries`: the bytes of TCP's sequence, or
    of QUIC's streams, in the packet, sent for the first time or again. `content_bytes`: the bytes of requests' streams
    that were not sent before. `headers`: the names and sizes of its headers after IP's: TCP's with options, or UDP's
    and those of the QUIC packets in it, which are long or short (RFC 9000, section 17).
    """

    at_s: float
    connection: ConnectionKey | None
    from_server: bool
    bytes: int
    udp_payload_bytes: int = 0
    kinds: dict[str, int] = field(default_factory=dict)
    lines: tuple[str, ...] = ()
    messages: frozenset[str] = frozenset()
    closes: bool = False
    mark: tuple[str, ...] = ()
    carries: tuple[Extent, ...] = ()
    content_bytes: int = 0
    headers: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True)
class Capture:
    """Every packet that passed one end, in order, and the host name of each connection.

    `records`: the TLS records that the servers sent over each TCP connection, in order and without gaps.
    """

    packets: tuple[PacketRecord, ...]
    hosts: dict[ConnectionKey, str]
    records: dict[ConnectionKey, tuple[Record, ...]] = field(default_factory=dict)


def read_capture(capture: Path, keys: Path) -> Capture:
    """The packets in `capture`, decrypted with `keys` (NSS key log). Raises EyelevelError."""
    reader, failure = _Reader(), None
    with tshark_output(capture, keys, *OPTIONS) as output:
        try:
            for _, element in ElementTree.iterparse(output):
                if element.tag == "packet":
                    reader.add(element)
                    element.clear()
        except ElementTree.ParseError as error:  # after the block, tshark itself may give a better reason
            failure = error
    if failure:
        raise EyelevelError(f"tshark's output on {capture} is broken: {failure}")
    try:
        return Capture(reader.packets(), reader.hosts, reader.records())
    except EyelevelError as error:
        raise EyelevelError(f"{capture}: {error}") from None


@dataclass
class _Part:
    """A part of a packet: bytes of a known kind, or the bytes from `start` on in the stream that `stream` returns.

    `number`: the number of the QUIC stream.
    """

    bytes: int
    kind: str = ""
    label: str = ""
    stream: Callable[[], Stream] | None = None
    start: int = 0
    line: int = 0
    number: int | None = None


@dataclass
class _UnresolvedPacket:
    """A packet whose streams are not known yet. `lines`: the names of its QUIC packets, or one empty name; `segment`:
    the flags in its TCP header, in words."""

    record: PacketRecord
    parts: list[_Part]
    lines: list[str]
    segment: str = ""


class _TcpStream:
    """One direction of a TCP connection: TLS records, and within them HTTP/2, both in order."""

    def __init__(self) -> None:
        self._records: list[tuple[int, int, list[tuple[int, str]]]] = []
        self._frames: list[tuple[int, int, int, int | None]] = []
        self._preface_bytes = 0

    def record(self, element: ElementTree.Element) -> None:
        """Add the next TLS record."""
        length = int(_value(element, "tls.record.length") or 0)
        content = int(_value(element, "tls.record.content_type") or APPLICATION_DATA)
        is_encrypted = _value(element, "tls.record.opaque_type") is not None or content == APPLICATION_DATA
        self._records.append((length, content if is_encrypted else -content, list(_tls_messages(element))))

    def frame(self, element: ElementTree.Element) -> None:
        """Add the next frame of HTTP/2, or the preface."""
        if _value(element, "http2.magic") is not None:
            self._preface_bytes = HTTP2_PREFACE_BYTES
        elif (length := _value(element, "http2.length")) is not None:
            padding_bytes = int(_value(element, "http2.pad_length") or 0)
            has_padding = int(_value(element, "http2.flags") or "0", 16) & 0x08 and padding_bytes
            frame_type = int(_value(element, "http2.type") or -1)
            # Frames of stream 0 belong to the connection (RFC 9113 section 5.1.1).
            owner = int(_value(element, "http2.streamid") or 0) or None
            self._frames.append((int(length), frame_type, padding_bytes + 1 if has_padding else 0, owner))

    @property
    def stream(self) -> Stream:
        """The stream. Read this only after all records and frames were added."""
        return self._contents[0]

    @property
    def records(self) -> tuple[Record, ...]:
        """The stream's TLS records. Read this only after all records and frames were added."""
        return self._contents[1]

    @cached_property
    def _contents(self) -> tuple[Stream, tuple[Record, ...]]:
        inner = Stream()
        inner.append(self._preface_bytes, kinds.FRAMING, "preface")
        for frame in self._frames:
            append_http2(inner, *frame)
        outer, carried_bytes, records = Stream(), 0, []
        handshake: int | None = EVERY_STREAM
        for length, content, messages in self._records:
            start = outer.length
            outer.append(RECORD_HEADER_BYTES, kinds.SECURITY)
            trailer_bytes = CONTENT_TYPE_BYTES + TAG_BYTES if content > 0 else 0
            inside_bytes = max(0, length - trailer_bytes)
            if abs(content) == APPLICATION_DATA:
                for piece in inner.take(carried_bytes, carried_bytes + inside_bytes):
                    outer.append(piece.bytes, piece.kind, piece.label, piece.owner)
                carried_bytes += inside_bytes
            elif abs(content) == HANDSHAKE_RECORD:
                for size, name in messages:
                    outer.append(min(size, inside_bytes), kinds.HANDSHAKE, name, handshake)
                    inside_bytes -= min(size, inside_bytes)
                    # Later messages, such as a ticket, are not needed by any stream.
                    handshake = None if name == FINISHED else handshake
                outer.append(inside_bytes, kinds.HANDSHAKE, messages[-1][1] if messages else "", handshake)
            else:
                name = {CHANGE_CIPHER_SPEC: "ChangeCipherSpec", ALERT: "Alert"}.get(abs(content), "")
                outer.append(inside_bytes, kinds.HANDSHAKE if name == "ChangeCipherSpec" else kinds.CONTROL, name)
            outer.append(min(trailer_bytes, length), kinds.SECURITY)
            records.append(Record(tuple(outer.extents(start))))
        return outer, tuple(records)


class _Reader:
    """Takes tshark's packets one by one, and resolves them once all streams are known."""

    def __init__(self) -> None:
        self.hosts: dict[ConnectionKey, str] = {}
        self._packets: list[_UnresolvedPacket] = []
        self._tcp: dict[_Way, _TcpStream] = defaultdict(_TcpStream)
        self._handshakes: dict[tuple[_Way, str], Stream] = defaultdict(Stream)
        self._streams: dict[tuple[_Way, int], Assembly] = {}

    def add(self, packet: ElementTree.Element) -> None:
        """Add the next packet of the capture."""
        protos: dict[str, list[ElementTree.Element]] = {}
        for proto in packet.findall("proto"):
            protos.setdefault(proto.get("name", ""), []).append(proto)
        frame = protos["frame"][0]
        at_s, size = float(_value(frame, "frame.time_epoch") or 0), int(_value(frame, "frame.len") or 0)
        transport = next((name for name in ("tcp", "udp") if name in protos and "ip" in protos), None)
        ports = [_value(protos[transport][0], f"{transport}.{end}port") for end in ("src", "dst")] if transport else []
        if not transport or HTTPS_PORT not in ports:
            record = PacketRecord(at_s, None, False, size)
            self._packets.append(_UnresolvedPacket(record, [_Part(size, kinds.OTHER)], []))
            return
        from_server = ports[0] == HTTPS_PORT
        ip = protos["ip"][0]
        server = _value(ip, "ip.src" if from_server else "ip.dst") or ""
        connection = (server, int(ports[1 if from_server else 0] or 0))
        parts = [_Part(int(_value(ip, "ip.hdr_len") or 0), kinds.IP)]
        record = PacketRecord(at_s, connection, from_server, size)
        dissect = self._tcp_packet if transport == "tcp" else self._quic_packet
        unresolved = dissect(record, (connection, from_server), parts, protos)
        for host in _inside([packet], "tls.handshake.extensions_server_name"):
            self.hosts.setdefault(connection, host.get("show", ""))
        # Bytes that no header accounts for.
        unresolved.parts.append(_Part(size - sum(part.bytes for part in unresolved.parts), kinds.UNREAD))
        self._packets.append(unresolved)

    def packets(self) -> tuple[PacketRecord, ...]:
        """All packets. Raises EyelevelError if one cannot be dissected."""
        return tuple(self._resolve(packet) for packet in self._packets)

    def records(self) -> dict[ConnectionKey, tuple[Record, ...]]:
        """The TLS records that servers sent, by connection."""
        return {connection: stream.records for (connection, from_server), stream in self._tcp.items() if from_server}

    def _tcp_packet(
        self, record: PacketRecord, way: _Way, parts: list[_Part], protos: dict[str, list[ElementTree.Element]]
    ) -> _UnresolvedPacket:
        tcp = protos["tcp"][0]
        flags, length = int(_value(tcp, "tcp.flags") or "0", 16), int(_value(tcp, "tcp.len") or 0)
        stream = self._tcp[way]
        for tls_record in _inside(protos.get("tls", ()), "tls.record"):
            stream.record(tls_record)
        for frame in _inside(protos.get("http2", ()), "http2.stream"):
            stream.frame(frame)
        header_bytes = int(_value(tcp, "tcp.hdr_len") or 0)
        parts.append(_Part(header_bytes, kinds.TRANSPORT))
        start = int(_value(tcp, "tcp.seq") or 0) - (0 if flags & SYN else 1)
        if length:
            parts.append(_Part(length, stream=lambda: stream.stream, start=start))
        names = [name for bit, name in ((SYN, "SYN"), (FIN, "FIN"), (RST, "RST")) if flags & bit]
        if not names and not length:
            names = ["ACK"]
            for part in parts:
                part.kind = kinds.ACKNOWLEDGING
        elif names == ["SYN"] and record.from_server:
            names = ["SYN, ACK"]
        fields = ("tcp.seq_raw", "tcp.ack_raw", "tcp.flags", "tcp.len", "tcp.options.timestamp.tsval")
        mark = tuple(_value(tcp, name) or "" for name in fields)
        carries = (Extent(None, start, start + length),) if length else ()
        headers = ((TCP_HEADER, header_bytes),)
        packet = replace(record, mark=mark, closes=bool(flags & (FIN | RST)), carries=carries, headers=headers)
        return _UnresolvedPacket(packet, parts, [""], segment=", ".join(names))

    def _quic_packet(
        self, record: PacketRecord, way: _Way, parts: list[_Part], protos: dict[str, list[ElementTree.Element]]
    ) -> _UnresolvedPacket:
        lines, closes, types, headers = [], False, set(), [(UDP_HEADER, UDP_HEADER_BYTES)]
        parts.append(_Part(UDP_HEADER_BYTES, kinds.TRANSPORT))
        for line, quic in enumerate(protos.get("quic", ())):
            size = int(quic.get("size", 0))
            lines.append(_quic_name(quic))
            payload = next(_inside([quic], "quic.payload", "quic.protected_payload"), None)
            payload_bytes = int(payload.get("size", 0)) if payload is not None else 0
            frames = [frame for frame in quic.findall("field") if frame.get("name") == "quic.frame"]
            frames_bytes = sum(map(frame_bytes, frames))
            tag_bytes = TAG_BYTES if frames_bytes + TAG_BYTES == payload_bytes else 0
            security_bytes = size - payload_bytes + tag_bytes
            parts.append(_Part(security_bytes, kinds.SECURITY, line=line))
            # A packet that cannot be decrypted has its tag within the payload.
            header_bytes = security_bytes - (TAG_BYTES if frames else 0)
            headers.append((SHORT_HEADER if lines[-1] == SHORT_PACKET else LONG_HEADER, header_bytes))
            for frame in frames:
                # tshark 4.4 writes the type as 0x06, 4.0 as 6.
                frame_type = int(_value(frame, "quic.frame_type") or "-1", 0)
                types.add(frame_type)
                closes |= frame_type in CLOSE_FRAMES
                parts += self._quic_frame(way, frame, frame_type, lines[-1], line)
            parts.append(_Part(payload_bytes - frames_bytes - tag_bytes, kinds.UNREAD, line=line))
        udp = protos["udp"][0]
        if types and types <= {PADDING_FRAME, *ACK_FRAMES}:
            for part in parts:
                if part.kind in (kinds.IP, kinds.TRANSPORT, kinds.SECURITY):
                    part.kind = kinds.ACKNOWLEDGING
        payload_bytes = int(_value(udp, "udp.length") or 0) - UDP_HEADER_BYTES
        mark = (_value(udp, "udp.payload") or "",)
        carries = tuple(Extent(p.number, p.start, p.start + p.bytes) for p in parts if p.number is not None and p.bytes)
        packet = replace(
            record, mark=mark, closes=closes, udp_payload_bytes=payload_bytes, carries=carries, headers=tuple(headers)
        )
        return _UnresolvedPacket(packet, parts, lines)

    def _quic_frame(
        self, way: _Way, frame: ElementTree.Element, frame_type: int, space: str, line: int
    ) -> Iterator[_Part]:
        size = frame_bytes(frame)
        if frame_type == PADDING_FRAME:
            yield _Part(size, kinds.PADDING, PADDED, line=line)
        elif frame_type in ACK_FRAMES:
            yield _Part(size, kinds.ACKNOWLEDGING, "ACK", line=line)
        elif frame_type == CRYPTO_FRAME or frame_type in STREAM_FRAMES:
            content = self._crypto(way, frame, space) if frame_type == CRYPTO_FRAME else self._http3(way, frame)
            yield _Part(size - content.bytes, kinds.FRAMING, line=line)
            yield replace(content, line=line)
        else:
            yield _Part(size, kinds.CONTROL, QUIC_FRAMES.get(frame_type, f"frame {frame_type:#x}"), line=line)

    def _crypto(self, way: _Way, frame: ElementTree.Element, space: str) -> _Part:
        """The content of a CRYPTO frame in its stream. tshark lists a message once it is complete."""
        stream = self._handshakes[way, space]
        for size, name in _tls_messages(frame):
            stream.append(size, kinds.HANDSHAKE, name)
        start, length = (int(_value(frame, f"quic.crypto.{name}") or 0) for name in ("offset", "length"))
        return _Part(length, stream=lambda: stream, start=start)

    def _http3(self, way: _Way, frame: ElementTree.Element) -> _Part:
        """The content of a STREAM frame in its stream."""
        number, start = (int(_value(frame, f"quic.stream.{name}") or 0) for name in ("stream_id", "offset"))
        inside = next(_inside([frame], "quic.stream_data"), None)
        data = bytes.fromhex(inside.get("value", "")) if inside is not None else b""
        assembly = self._streams.setdefault((way, number), Assembly(partial(append_http3, stream_id=number)))
        assembly.add(start, data)
        return _Part(len(data), stream=lambda: assembly.stream, start=start, number=number)

    def _resolve(self, packet: _UnresolvedPacket) -> PacketRecord:
        """The packet with the kinds of all its bytes."""
        pieces: list[tuple[int, Piece]] = []
        content_bytes = 0
        for part in packet.parts:
            part_pieces = (
                part.stream().take(part.start, part.start + part.bytes)
                if part.stream
                else [Piece(part.kind, part.bytes, part.label)]
            )
            pieces += [(part.line, piece) for piece in part_pieces if piece.bytes]
            content_bytes += sum(piece.bytes for piece in part_pieces if _is_content(part, piece))
        lines = []
        for number, space in enumerate(packet.lines):
            contents = _contents(piece for line, piece in pieces if line == number)
            contents = ", ".join(filter(None, (packet.segment, contents)))
            lines.append(": ".join(filter(None, (space, contents))))
        sizes = {kind: size for kind, size in bytes_by_kind(piece for _, piece in pieces).items() if size}
        if sum(sizes.values()) != packet.record.bytes or min(sizes.values()) < 0:
            raise EyelevelError(f"a packet of {packet.record.bytes} bytes was dissected into {sizes}")
        new = {piece.label for _, piece in pieces if piece.label and piece.kind != kinds.AGAIN}
        return replace(
            packet.record, kinds=sizes, lines=tuple(lines), messages=frozenset(new), content_bytes=content_bytes
        )


def _is_content(part: _Part, piece: Piece) -> bool:
    """Whether a piece of `part` belongs to a request's stream and was not sent before."""
    if piece.kind == kinds.AGAIN:
        return False
    return is_request_stream(part.number) if part.number is not None else piece.owner not in (None, EVERY_STREAM)


def _contents(pieces: Iterable[Piece]) -> str:
    """The names of a (QUIC) packet's messages. Frames that nearly every packet has are named only if there is nothing
    else, padding only if it is more than half of the packet."""
    pieces = list(pieces)
    labels = dict.fromkeys(f"{p.label} again" if p.kind == kinds.AGAIN else p.label for p in pieces if p.label)
    names = [label for label in labels if label not in UNREMARKABLE] or [label for label in labels if label != PADDED]
    tls = [label for label in names if label in (*TLS_MESSAGES.values(), "ChangeCipherSpec")]
    if len(tls) > MOST_MESSAGES:
        names = [f"{tls[0]} … {tls[-1]}", *(label for label in names if label not in tls)]
    padding_bytes = sum(piece.bytes for piece in pieces if piece.kind == kinds.PADDING)
    mostly_padding = 2 * padding_bytes > sum(piece.bytes for piece in pieces)
    return ", ".join([*names, *([PADDED] if mostly_padding else [])])


def _quic_name(quic: ElementTree.Element) -> str:
    """The type of a QUIC packet (RFC 9000 section 17)."""
    kind = _value(quic, "quic.long.packet_type")
    return LONG_PACKETS[int(kind)] if kind is not None else SHORT_PACKET


def frame_bytes(frame: ElementTree.Element) -> int:
    """The length of a QUIC frame.

    tshark leaves the length of a STREAM frame at 1 if its HTTP/3 dissector gives up within the frame, as it may if the
    previous packet was lost. The frame's own fields are complete even then.
    """
    fields_bytes = sum(
        int(field.get("size", 0)) for field in frame if field.get("name", "").removeprefix("quic.") in FRAME_FIELDS
    )
    return max(int(frame.get("size", 0)), fields_bytes)


def _tls_messages(element: ElementTree.Element) -> Iterator[tuple[int, str]]:
    """The size and the name of each handshake message, or fragment of one, within `element`."""
    for message in _inside([element], "tls.handshake"):
        shown_name = message.get("showname", "").partition(": ")[2].partition(" (")[0].replace(" ", "")
        kind = _value(message, "tls.handshake.type")
        yield int(message.get("size", 0)), TLS_MESSAGES.get(int(kind), f"handshake {kind}") if kind else shown_name


def _inside(elements: Iterable[ElementTree.Element], *names: str) -> Iterator[ElementTree.Element]:
    """All fields with one of these names, at any depth."""
    return (field for element in elements for field in element.iter("field") if field.get("name") in names)


def _value(element: ElementTree.Element, name: str) -> str | None:
    """The value of the first field `name` within `element`."""
    return next((field.get("show") for field in element.iter("field") if field.get("name") == name), None)
