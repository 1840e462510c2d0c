"""What a capture at the servers, decrypted with the browser's keys, tells of a connection. tshark reads the packets."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from base.errors import EyelevelError
from measure.run.capture import told_by_tshark

HTTPS_PORT = 443
UDP_HEADER_BYTES = 8
# A packet that carries a part of an object, not an acknowledgement or a setting.
BULK_BYTES = 600
# HTTP/2 frames of type 1 are HEADERS (RFC 9113 section 6.2); the first stream a client opens has number 0 in QUIC.
HEADERS_FRAME, FIRST_STREAM = "1", "0"
SERVER_HELLO, NEW_SESSION_TICKET, ENCRYPTED_EXTENSIONS = "2", "4", "8"
EARLY_DATA = "42"  # as an extension (RFC 8446 section 4.2.10)

# TLS and QUIC code points that the two servers are to agree on (RFC 8446 section 4.2, RFC 9000 section 15).
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
class Packet:
    """One packet as the servers saw it: when, from which side, how much it carried; its fields by tshark's names."""

    at_s: float
    from_server: bool
    payload_bytes: int
    fields: dict[str, list[str]]


@dataclass(frozen=True)
class Connection:
    """The packets of one connection, in the order they came or went."""

    transport: str
    packets: tuple[Packet, ...]

    @property
    def sent_bytes(self) -> int:
        """What the server sent, without headers of IP and TCP or UDP; sent again counts again."""
        return sum(packet.payload_bytes for packet in self.packets if packet.from_server)

    @cached_property
    def transfers(self) -> list[list[Packet]]:
        """What the server sent in bulk, apart where it paused for longer than any sender would within an object."""
        bulk = [packet for packet in self.packets if packet.from_server and packet.payload_bytes > BULK_BYTES]
        starts = [0, *(n for n, (a, b) in enumerate(pairwise(bulk), 1) if b.at_s - a.at_s > 1.0), len(bulk)]
        return [bulk[begin:end] for begin, end in pairwise(starts)]

    @property
    def server(self) -> str:
        """The address of the server."""
        return next((packet.fields["ip.src"][0] for packet in self.packets if packet.from_server), "")

    @property
    def request_after_s(self) -> float | None:
        """From the client's first packet to its first request, as they came in at the server; None if none did."""
        name, value = (
            ("http2.type", HEADERS_FRAME) if self.transport == "tcp" else ("quic.stream.stream_id", FIRST_STREAM)
        )
        for packet in self.packets:
            if not packet.from_server and value in packet.fields[name]:
                return packet.at_s - self.packets[0].at_s
        return None

    @property
    def took_early_data(self) -> bool:
        """Whether the server agreed to what came with the client's first flight (RFC 8446 section 4.2.10)."""
        for packet in self.packets:
            messages, extensions = (packet.fields[f"tls.handshake.{name}"] for name in ("type", "extension.type"))
            if packet.from_server and ENCRYPTED_EXTENSIONS in messages:
                # Each ticket beside it has one, too, and says another thing by it.
                return extensions.count(EARLY_DATA) > messages.count(NEW_SESSION_TICKET)
        return False

    @property
    def accepted_in_syn_bytes(self) -> int:
        """What the server acknowledged of data that came with the SYN (RFC 7413); SYN and SYN-ACK come first."""
        answer = next(packet for packet in self.packets if packet.from_server)
        return int(answer.fields["tcp.ack"][0]) - 1

    @property
    def announced_mss_bytes(self) -> int:
        """The largest segments that the browser's side asks for (RFC 9293, section 3.7.1)."""
        return int(self._first("tcp.options.mss_val", from_server=False))

    @property
    def handshake(self) -> dict[str, str]:
        """What was agreed upon: TLS version, key exchange group, cipher, application protocol, QUIC's version."""
        hello = next(
            (p for p in self.packets if p.from_server and SERVER_HELLO in p.fields["tls.handshake.type"]), None
        )
        if hello is None:
            raise EyelevelError("no handshake was found in the capture")
        agreed = {
            "TLS version": _named(TLS_VERSIONS, hello.fields["tls.handshake.extensions.supported_version"]),
            "key exchange group": _named(GROUPS, hello.fields["tls.handshake.extensions_key_share_group"]),
            "cipher": _named(CIPHERS, hello.fields["tls.handshake.ciphersuite"]),
            "application protocol": self._first("tls.handshake.extensions_alpn_str", from_server=True),
        }
        if self.transport == "quic":
            agreed["QUIC version"] = _named(QUIC_VERSIONS, hello.fields["quic.version"])
        return agreed

    @property
    def certificates(self) -> list[str]:
        """The server's chain, each certificate as its key's kind and its issuer."""
        found = next(
            (p.fields["tls.handshake.certificate"] for p in self.packets if p.fields["tls.handshake.certificate"]), []
        )
        return [_certificate(bytes.fromhex(text.replace(":", ""))) for text in found]

    @property
    def connection_options(self) -> list[str]:
        """The tags that arrived with the client's transport parameters."""
        text = self._first("tls.quic.parameter.google.connection_options", from_server=False)
        tags = bytes.fromhex(text.replace(":", "")).decode("ascii", "replace")
        return [tags[start : start + 4] for start in range(0, len(tags), 4)]

    @property
    def transport_parameters(self) -> dict[str, str]:
        """Those of both sides that bound a transfer (RFC 9000 section 18.2)."""
        names = ("max_idle_timeout", "initial_max_data")
        return {
            f"{side} {name}": self._first(f"tls.quic.parameter.{name}", from_server=side == "server")
            for side in ("client", "server")
            for name in names
        }

    def _first(self, name: str, *, from_server: bool) -> str:
        return next((p.fields[name][0] for p in self.packets if p.from_server == from_server and p.fields[name]), "")


def largest(connections: Iterable[Connection]) -> Connection:
    """The connection that carried most; the last of those that did."""
    connections = list(connections)
    most_bytes = max(connection.sent_bytes for connection in connections)
    return [connection for connection in connections if connection.sent_bytes > most_bytes / 2][-1]


def request_after_s(connections: Iterable[Connection]) -> float:
    """The least time from a connection's first packet to its first request: what a busy machine did not prolong.

    Of several connections to a server the last is looked at, which a browser that returns makes. Raises EyelevelError.
    """
    asked = {c.server: after_s for c in connections if (after_s := c.request_after_s) is not None}
    if not asked:
        raise EyelevelError("no request was found in the capture; were its keys kept?")
    return min(asked.values())


def early_data(connections: Iterable[Connection]) -> dict[str, bool]:
    """Of each server that was asked anything, whether it took early data, on the last connection to it."""
    return {c.server: c.took_early_data for c in connections if c.request_after_s is not None}


def read_connections(capture: Path, keys: Path, transport: str) -> list[Connection]:
    """The connections in `capture`, decrypted with `keys` (NSS key log), by when they began. Raises EyelevelError."""
    options = ["-T", "fields", "-E", f"aggregator={SEPARATOR}", "-E", "separator=/t"]
    options += [word for field in FIELDS for word in ("-e", field)]
    with told_by_tshark(capture, keys, *options) as told:
        lines = told.read().decode().splitlines()
    name = {"tcp": "tcp", "quic": "udp"}[transport]
    streams: dict[str, list[Packet]] = {}
    for line in lines:
        fields = {f: text.split(SEPARATOR) if text else [] for f, text in zip(FIELDS, line.split("\t"), strict=True)}
        if not fields[f"{name}.stream"]:
            continue
        length = int(fields["tcp.len" if name == "tcp" else "udp.length"][0])
        packet = Packet(
            at_s=float(fields["frame.time_epoch"][0]),
            from_server=fields[f"{name}.srcport"][0] == str(HTTPS_PORT),
            payload_bytes=length if name == "tcp" else length - UDP_HEADER_BYTES,
            fields=fields,
        )
        streams.setdefault(fields[f"{name}.stream"][0], []).append(packet)
    if not streams:
        raise EyelevelError(f"{capture} holds no packet of {transport}")
    return [Connection(transport, tuple(packets)) for packets in streams.values()]


def kernel_congestion_control(sockets: Path) -> str:
    """Every congestion control that `ss -ti` told of the servers' connections: one name, if all is right."""
    lines = sockets.read_text().splitlines()
    told = [
        info.split()[0]
        for address, info in pairwise(lines)
        if not address.startswith("\t") and f":{HTTPS_PORT} " in address and info.startswith("\t")
    ]
    return " ".join(sorted(set(told)))


def _named(names: dict[str, str], values: list[str]) -> str:
    return names.get(values[0], values[0]) if values else "none"


def _certificate(der: bytes) -> str:
    certificate = x509.load_der_x509_certificate(der)
    key = certificate.public_key()
    kind = f"ECDSA {key.curve.name}" if isinstance(key, ec.EllipticCurvePublicKey) else type(key).__name__
    return f"{kind} by {certificate.issuer.rfc4514_string()}"
