"""Reads the connections in a capture with tshark, which decrypts them with the browser's keys."""

import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import IO

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from base.errors import EyelevelError
from base.places import tool
from base.processes import last_line_of

HTTPS_PORT = "443"  # as tshark prints it
UDP_HEADER_BYTES = 8
# Larger packets carry a part of an object; smaller ones may be acknowledgements or settings.
BULK_BYTES = 600
# HTTP/2 frames of type 1 are HEADERS (RFC 9113 section 6.2). In QUIC, the first stream that a client opens is number 0.
HEADERS_FRAME, FIRST_STREAM = "1", "0"
SERVER_HELLO, NEW_SESSION_TICKET, ENCRYPTED_EXTENSIONS = "2", "4", "8"
EARLY_DATA = "42"  # number of the TLS extension (RFC 8446 section 4.2.10)

# Names of TLS and QUIC code points on which all servers should agree (RFC 8446 section 4.2, RFC 9000 section 15).
TLS_VERSIONS = {"0x0304": "TLS 1.3"}
GROUPS = {"29": "X25519", "23": "P-256", "24": "P-384", "4588": "X25519MLKEM768"}
CIPHERS = {"0x1301": "AES-128-GCM", "0x1302": "AES-256-GCM", "0x1303": "ChaCha20-Poly1305"}
QUIC_VERSIONS = {"0x00000001": "QUIC v1"}

FIELDS = (
    "frame.time_epoch",
    "ip.src",
    "tcp.stream",
    "udp.stream",
    "tcp.srcport",
    "udp.srcport",
    "tcp.len",
    "tcp.ack",
    "tcp.options.mss_val",
    "udp.length",
    "tls.handshake.type",
    "tls.handshake.extension.type",
    "tls.handshake.ciphersuite",
    "tls.handshake.extensions_key_share_group",
    "tls.handshake.extensions.supported_version",
    "tls.handshake.extensions_alpn_str",
    "tls.handshake.certificate",
    "http2.type",
    "quic.version",
    "quic.stream.stream_id",
    "tls.quic.parameter.google.connection_options",
    "tls.quic.parameter.max_idle_timeout",
    "tls.quic.parameter.initial_max_data",
)
SEPARATOR = ","


@dataclass(frozen=True)
class Wire:
    """The names of tshark's fields for a transport: the connection's number, the sender's port, and a packet's length,
    which includes `header_bytes` of header. A packet carries a request if its field `request` is `request_value`."""

    stream: str
    port: str
    length: str
    header_bytes: int
    request: str
    request_value: str


# HTTP version → the fields of its transport.
WIRES = {
    "h2": Wire("tcp.stream", "tcp.srcport", "tcp.len", 0, "http2.type", HEADERS_FRAME),
    "h3": Wire("udp.stream", "udp.srcport", "udp.length", UDP_HEADER_BYTES, "quic.stream.stream_id", FIRST_STREAM),
}


@dataclass(frozen=True)
class CapturedPacket:
    """A packet as captured at the servers' end: its time, its sender, its payload, and its fields by tshark's names."""

    at_s: float
    from_server: bool
    payload_bytes: int
    fields: dict[str, list[str]]


@dataclass(frozen=True)
class CapturedConnection:
    """The packets of one connection in the order of the capture."""

    http_version: str
    packets: tuple[CapturedPacket, ...]

    @property
    def sent_bytes(self) -> int:
        """The bytes that the server sent, without IP, TCP and UDP headers; retransmissions count again."""
        return sum(packet.payload_bytes for packet in self.packets if packet.from_server)

    @cached_property
    def transfers(self) -> list[list[CapturedPacket]]:
        """The server's bulk packets, split at pauses of more than 1 s: no sender pauses for that long within an
        object."""
        bulk = [packet for packet in self.packets if packet.from_server and packet.payload_bytes > BULK_BYTES]
        starts = [0, *(n for n, (a, b) in enumerate(pairwise(bulk), 1) if b.at_s - a.at_s > 1.0), len(bulk)]
        return [bulk[begin:end] for begin, end in pairwise(starts)]

    @property
    def server(self) -> str:
        """The address of the server."""
        return next((packet.fields["ip.src"][0] for packet in self.packets if packet.from_server), "")

    @property
    def request_after_s(self) -> float | None:
        """The time from the client's first packet to its first request, both as received by the server; None without a
        request."""
        wire = WIRES[self.http_version]
        for packet in self.packets:
            if not packet.from_server and wire.request_value in packet.fields[wire.request]:
                return packet.at_s - self.packets[0].at_s
        return None

    @property
    def took_early_data(self) -> bool:
        """Whether the server accepted early data in the client's first flight (RFC 8446 section 4.2.10)."""
        for packet in self.packets:
            messages, extensions = (packet.fields[f"tls.handshake.{name}"] for name in ("type", "extension.type"))
            if packet.from_server and ENCRYPTED_EXTENSIONS in messages:
                # Session tickets in the same packet have this extension, too, with another meaning.
                return extensions.count(EARLY_DATA) > messages.count(NEW_SESSION_TICKET)
        return False

    @property
    def accepted_in_syn_bytes(self) -> int:
        """The bytes of data in the SYN that the server acknowledged (RFC 7413); SYN and SYN-ACK come first."""
        answer = next(packet for packet in self.packets if packet.from_server)
        return int(answer.fields["tcp.ack"][0]) - 1

    @property
    def announced_mss_bytes(self) -> int:
        """The largest segment size that the browser's side announces (RFC 9293, section 3.7.1)."""
        return int(self._first("tcp.options.mss_val", from_server=False))

    @property
    def handshake(self) -> dict[str, str]:
        """The negotiated parameters: TLS version, key exchange group, cipher, application protocol and QUIC version."""
        hellos = [p for p in self.packets if p.from_server and SERVER_HELLO in p.fields["tls.handshake.type"]]
        if not hellos:
            raise EyelevelError("no handshake was found in the capture")
        hello = hellos[-1]  # an earlier one may be a HelloRetryRequest for another key share (RFC 8446 section 4.1.4)
        agreed = {
            "TLS version": _named(TLS_VERSIONS, hello.fields["tls.handshake.extensions.supported_version"]),
            "key exchange group": _named(GROUPS, hello.fields["tls.handshake.extensions_key_share_group"]),
            "cipher": _named(CIPHERS, hello.fields["tls.handshake.ciphersuite"]),
            "application protocol": self._first("tls.handshake.extensions_alpn_str", from_server=True),
        }
        if versions := hello.fields["quic.version"]:
            agreed["QUIC version"] = _named(QUIC_VERSIONS, versions)
        return agreed

    @property
    def certificates(self) -> list[str]:
        """The server's certificate chain; each certificate is described by its kind of key and its issuer."""
        chain = next(
            (p.fields["tls.handshake.certificate"] for p in self.packets if p.fields["tls.handshake.certificate"]), []
        )
        return [_certificate(bytes.fromhex(text.replace(":", ""))) for text in chain]

    @property
    def connection_options(self) -> list[str]:
        """The tags of Google's connection options in the client's transport parameters."""
        text = self._first("tls.quic.parameter.google.connection_options", from_server=False)
        tags = bytes.fromhex(text.replace(":", "")).decode("ascii", "replace")
        return [tags[start : start + 4] for start in range(0, len(tags), 4)]

    @property
    def transport_parameters(self) -> dict[str, str]:
        """The transport parameters of both sides that limit a transfer (RFC 9000, section 18.2)."""
        names = ("max_idle_timeout", "initial_max_data")
        return {
            f"{side} {name}": self._first(f"tls.quic.parameter.{name}", from_server=side == "server")
            for side in ("client", "server")
            for name in names
        }

    def _first(self, name: str, *, from_server: bool) -> str:
        return next((p.fields[name][0] for p in self.packets if p.from_server == from_server and p.fields[name]), "")


def largest(connections: Iterable[CapturedConnection]) -> CapturedConnection:
    """The last of the connections that carried more than half as many bytes as the one that carried most."""
    connections = list(connections)
    most_bytes = max(connection.sent_bytes for connection in connections)
    return [connection for connection in connections if connection.sent_bytes > most_bytes / 2][-1]


def request_after_s(connections: Iterable[CapturedConnection]) -> float:
    """The shortest time from a connection's first packet to its first request: a busy machine only prolongs this time.

    If a server has several connections, as with a returning browser, its last one counts. Raises EyelevelError.
    """
    times_s = {c.server: after_s for c in connections if (after_s := c.request_after_s) is not None}
    if not times_s:
        raise EyelevelError("no request was found in the capture; were its keys kept?")
    return min(times_s.values())


def early_data(connections: Iterable[CapturedConnection]) -> dict[str, bool]:
    """Server → whether it accepted early data on its last connection; only servers that got a request."""
    return {c.server: c.took_early_data for c in connections if c.request_after_s is not None}


def read_connections(
    capture: Path, keys: Path, http_version: str, more: Sequence[str] = ()
) -> list[CapturedConnection]:
    """The connections in `capture` that carry this version of HTTP, in the order of their first packets, decrypted with
    `keys` (NSS key log). Their packets have `FIELDS` and the fields in `more`. Raises EyelevelError."""
    wire = WIRES[http_version]
    streams: dict[str, list[CapturedPacket]] = {}
    for fields in read_fields(capture, keys, (*FIELDS, *more)):
        if not fields[wire.stream]:
            continue
        packet = CapturedPacket(
            at_s=float(fields["frame.time_epoch"][0]),
            from_server=fields[wire.port][0] == HTTPS_PORT,
            payload_bytes=int(fields[wire.length][0]) - wire.header_bytes,
            fields=fields,
        )
        streams.setdefault(fields[wire.stream][0], []).append(packet)
    if not streams:
        raise EyelevelError(f"{capture} holds no packet that could carry {http_version}")
    return [CapturedConnection(http_version, tuple(packets)) for packets in streams.values()]


def read_fields(capture: Path, keys: Path, names: Sequence[str], *options: str) -> list[dict[str, list[str]]]:
    """For each packet in `capture`, in order: the values of tshark's fields `names`. Raises EyelevelError."""
    form = ["-T", "fields", "-E", f"aggregator={SEPARATOR}", "-E", "separator=/t"]
    form += [word for name in names for word in ("-e", name)]
    with tshark_output(capture, keys, *options, *form) as output:
        lines = output.read().decode().splitlines()
    return [
        {name: text.split(SEPARATOR) if text else [] for name, text in zip(names, line.split("\t"), strict=True)}
        for line in lines
    ]


@contextmanager
def tshark_output(capture: Path, keys: Path, *options: str) -> Iterator[IO[bytes]]:
    """The output of tshark with `options` on `capture`, decrypted with `keys`. Raises EyelevelError."""
    command: list[str | Path] = [tool("tshark"), "-r", capture, "-o", f"tls.keylog_file:{keys}", *options]
    with (
        tempfile.TemporaryFile("w+") as complaints,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=complaints) as tshark,
    ):
        assert tshark.stdout
        yield tshark.stdout
        if tshark.wait():
            complaints.seek(0)
            raise EyelevelError(f"tshark cannot read {capture}: {last_line_of(complaints.read())}")


def _named(names: dict[str, str], values: list[str]) -> str:
    return names.get(values[0], values[0]) if values else "none"


def _certificate(der: bytes) -> str:
    certificate = x509.load_der_x509_certificate(der)
    key = certificate.public_key()
    kind = f"ECDSA {key.curve.name}" if isinstance(key, ec.EllipticCurvePublicKey) else type(key).__name__
    return f"{kind} by {certificate.issuer.rfc4514_string()}"
