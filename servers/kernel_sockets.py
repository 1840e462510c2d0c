"""The kernel's account of its TCP connections, queried over netlink: like `ss --tcp --info`, many times a second.

sock_diag(7); the layouts are those of linux/inet_diag.h and linux/tcp.h, to which the kernel only adds fields. They are
decoded here rather than by a library such as pyroute2, since answers are compared and stored as bytes, 200 times a
second; only those that differ are decoded, afterwards.

In a folder with such accounts, the file `ACCOUNTS` has, for each, its time (s since 1970), its length, and the account.
"""

import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from base.errors import EyelevelError

ACCOUNTS = "sockets.bin"
RECORD = struct.Struct("=dI")

_SOCK_DIAG, _SOCK_DIAG_BY_FAMILY = 4, 20
_REQUEST_DUMP = 0x301
_ERROR, _DONE = 2, 3
_INFO, _VEGASINFO, _CONG, _BBRINFO = 2, 3, 4, 16
# All states of connections, except those that have no account: LISTEN, SYN-RECEIVED, TIME-WAIT and CLOSED.
_STATES = sum(1 << state for state in (1, 4, 5, 8, 9, 11))
_HEADER = struct.Struct("=IHHII")
_ATTRIBUTE = struct.Struct("=HH")
_MESSAGE_BYTES = 72
_ANSWER_BYTES = 1 << 18
# The bytes of tcp_info that say how long ago data and acknowledgements were last sent or received. They differ in
# every answer.
_AGES_AT, _AGES_END = 44, 60

# Field of tcp_info → its offset and its struct format.
_FIELDS = {
    "ca_state": (1, "=B"),
    "snd_mss": (16, "=I"),
    "unacked": (24, "=I"),
    "sacked": (28, "=I"),
    "lost": (32, "=I"),
    "retrans": (36, "=I"),
    "rtt": (68, "=I"),
    "snd_ssthresh": (76, "=I"),
    "snd_cwnd": (80, "=I"),
    "total_retrans": (100, "=I"),
    "pacing_rate": (104, "=Q"),
    "bytes_acked": (120, "=Q"),
    "notsent_bytes": (144, "=I"),
    "min_rtt": (148, "=I"),
    "delivery_rate": (160, "=Q"),
}
_TCP_INFO_BYTES = 168
_BBR_INFO = struct.Struct("=5I")
NEVER = 0xFFFFFFFF


@dataclass(frozen=True)
class Bbr:
    """BBR's own account: its bandwidth estimate in bytes/s, and its gains."""

    bandwidth_bytes_per_s: int
    pacing_gain: float
    cwnd_gain: float


@dataclass(frozen=True)
class TcpInfo:
    """A connection's state at one moment. Counts are in segments of `mss_bytes`, RTTs in ms.

    `ca_state`: 0 open, 1 disorder, 2 window reduced, 3 recovery, 4 loss (after a retransmission timeout). `ssthresh` is
    None while there is none, `min_rtt_ms` is None while nothing was measured, and `bbr` is None for other congestion
    controls.
    """

    server: tuple[str, int]
    client: tuple[str, int]
    congestion_control: str
    ca_state: int
    mss_bytes: int
    in_flight: int
    smoothed_rtt_ms: float
    min_rtt_ms: float | None
    ssthresh: int | None
    cwnd: int
    retransmitted: int
    pacing_bytes_per_s: int
    delivered_bytes: int
    unsent_bytes: int
    delivery_bytes_per_s: int
    bbr: Bbr | None


class KernelSockets:
    """A socket for querying the kernel about the TCP connections (IPv4) of this network namespace."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 * _ANSWER_BYTES)
        extensions = 1 << (_INFO - 1) | 1 << (_VEGASINFO - 1) | 1 << (_CONG - 1)
        body = struct.pack("=BBBxI48x", socket.AF_INET, socket.IPPROTO_TCP, extensions, _STATES)
        self._request = _HEADER.pack(_HEADER.size + len(body), _SOCK_DIAG_BY_FAMILY, _REQUEST_DUMP, 1, 0) + body

    def ask(self) -> Iterator[bytes]:
        """A message for each connection (see `decoded`). Raises EyelevelError when the kernel returns an error."""
        self._socket.send(self._request)
        while True:
            answer = self._socket.recv(_ANSWER_BYTES)
            at = 0
            while at < len(answer):
                length, kind, *_ = _HEADER.unpack_from(answer, at)
                if kind == _DONE:
                    return
                if kind == _ERROR:
                    number = -struct.unpack_from("=i", answer, at + _HEADER.size)[0]
                    raise EyelevelError(f"the kernel gives no account of TCP connections (sock_diag: error {number})")
                yield answer[at + _HEADER.size : at + length]
                at += (length + 3) & ~3

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()


def identity(message: bytes) -> bytes:
    """The bytes that distinguish a message's connection from all others, including later ones between the same ends."""
    return message[44:52]


def lasting(message: bytes) -> bytes:
    """The parts of a message about the connection's sending, without the ages, which differ in every message."""
    for kind, at, end in _attributes(message):
        if kind == _INFO:
            info_end = min(end, at + _TCP_INFO_BYTES)
            return message[at : at + _AGES_AT] + message[at + _AGES_END : info_end] + message[end:]
    return b""


def decoded(message: bytes) -> TcpInfo | None:
    """The account in a message; None if it has none."""
    attributes = {kind: message[at:end] for kind, at, end in _attributes(message)}
    if _INFO not in attributes:
        return None
    ports = struct.unpack_from("!HH", message, 4)
    server, client = socket.inet_ntoa(message[8:12]), socket.inet_ntoa(message[24:28])
    info = attributes[_INFO].ljust(_TCP_INFO_BYTES, b"\0")
    fields = {name: struct.unpack_from(form, info, at)[0] for name, (at, form) in _FIELDS.items()}
    bbr = None
    if _BBRINFO in attributes:
        low, high, _, pacing_gain, cwnd_gain = _BBR_INFO.unpack_from(attributes[_BBRINFO])
        bbr = Bbr(low | high << 32, pacing_gain / 256, cwnd_gain / 256)
    return TcpInfo(
        server=(server, ports[0]),
        client=(client, ports[1]),
        congestion_control=attributes.get(_CONG, b"").rstrip(b"\0").decode(),
        ca_state=fields["ca_state"],
        mss_bytes=fields["snd_mss"],
        in_flight=fields["unacked"] - fields["sacked"] - fields["lost"] + fields["retrans"],
        smoothed_rtt_ms=fields["rtt"] / 1e3,
        min_rtt_ms=None if fields["min_rtt"] == NEVER else fields["min_rtt"] / 1e3,
        ssthresh=None if fields["snd_ssthresh"] >= NEVER >> 1 else fields["snd_ssthresh"],
        cwnd=fields["snd_cwnd"],
        retransmitted=fields["total_retrans"],
        pacing_bytes_per_s=fields["pacing_rate"],
        # Data that is acknowledged out of order has arrived, too.
        delivered_bytes=fields["bytes_acked"] + fields["sacked"] * fields["snd_mss"],
        unsent_bytes=fields["notsent_bytes"],
        delivery_bytes_per_s=fields["delivery_rate"],
        bbr=bbr,
    )


def _attributes(message: bytes) -> Iterator[tuple[int, int, int]]:
    """For each attribute of a message: its kind, and where its value begins and ends."""
    at = _MESSAGE_BYTES
    while at + _ATTRIBUTE.size <= len(message):
        length, kind = _ATTRIBUTE.unpack_from(message, at)
        yield kind, at + _ATTRIBUTE.size, at + length
        at += (length + 3) & ~3


def accounts_of_clients(folder: Path) -> Iterator[tuple[float, bytes, TcpInfo]]:
    """The accounts in `folder` of connections with clients, in order: the time (s since 1970), the connection's
    `identity`, and the account.

    Connections over the servers' own loopback are left out: some of their programs communicate there.
    """
    data, at = (folder / ACCOUNTS).read_bytes(), 0
    while at < len(data):
        at_s, length = RECORD.unpack_from(data, at)
        at += RECORD.size
        message = data[at : at + length]
        at += length
        if (info := decoded(message)) and not info.server[0].startswith("127."):
            yield at_s, identity(message), info


def congestion_controls(folder: Path) -> set[str]:
    """The congestion controls of all connections between servers and clients, by the accounts in `folder`."""
    return {info.congestion_control for _, _, info in accounts_of_clients(folder)}
