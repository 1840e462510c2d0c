"""Protocol settings: the values of `protocols.toml`.

A protocol is passed by value to servers, emulated network and browser; its name is not looked up again. Each server
knows which settings it does not support (`servers.contract`).
"""

import re
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from base.errors import EyelevelError
from base.structure import structured, unstructured
from tuning.settings import DERIVED, Catalogue, Reader

FILENAME = "protocols.toml"


@dataclass(frozen=True)
class Transport:
    """The properties that depend only on the transport.

    `handshake_round_trips`: the round trips of a connection before its first request is sent (RFC 8446, RFC 9001).
    `in_kernel`: whether the kernel implements it, so that its settings are the kernel's. `default_server`: the server
    unless a protocol names one. `must_be_known`: whether the browser can use it only if it already knows that a server
    speaks it.
    """

    http_version: str
    handshake_round_trips: int
    in_kernel: bool
    default_server: str
    must_be_known: bool


TRANSPORTS = {
    "tcp": Transport("h2", handshake_round_trips=2, in_kernel=True, default_server="nginx", must_be_known=False),
    "quic": Transport("h3", handshake_round_trips=1, in_kernel=False, default_server="quic_server", must_be_known=True),
}
# TCP Fast Open for all listening and connecting sockets, without the cookie of an earlier visit (Linux's
# ip-sysctl.rst).
TCP_FAST_OPEN = "net.ipv4.tcp_fastopen"
FAST_OPEN_SERVER, FAST_OPEN_CLIENT = str(0x2 | 0x200 | 0x400), str(0x1 | 0x4)
# How many unsent bytes of a socket the kernel holds before the socket takes more (Linux's ip-sysctl.rst).
TCP_NOTSENT_LOWAT = "net.ipv4.tcp_notsent_lowat"
NOTSENT_LOWAT_LIMIT_BYTES = 1 << 32  # the kernel holds it in 32 bits; all of them set mean "no limit"
SYSCTLS = ("server_sysctls", "client_sysctls")
# The names of Linux's congestion controls have fewer than 16 characters (TCP_CA_NAME_MAX).
KERNELS_NAME = re.compile("[a-z0-9_-]{1,15}")
# The maximum segment size in packets of 1500 bytes, the smallest that Linux accepts, and the bytes of it that time
# stamps take.
LARGEST_MSS_BYTES, LEAST_MSS_BYTES, TIMESTAMPS_BYTES = 1460, 536, 12
# The most packets of a congestion window: 1.2 Gbit/s at a round-trip time of one second.
MOST_WINDOW_PACKETS = 100_000
# The most bytes that a TLS record carries (RFC 8446, section 5.1), and the smallest limit that a server can be given.
LARGEST_RECORD_BYTES, LEAST_RECORD_BYTES = 16384, 512
# The groups that servers may require for the key exchange. The browser has a key share only for one of them.
TLS_GROUPS = ("X25519", "P-256", "P-384")
BROWSERS_GROUP = "X25519"
# How a browser finds out that servers also speak another protocol: by a header field of their responses (RFC 7838),
# from an earlier visit, or from DNS (RFC 9460).
ALT_SVC, VISIT_BEFORE, HTTPS_RECORD = "alt-svc", "visit-before", "https-record"
DISCOVERIES = (ALT_SVC, VISIT_BEFORE, HTTPS_RECORD)
# The words in braces that the command of a `program` may have; `servers.program` puts values in their places.
PLACEHOLDERS = ("address", "port", "certificate", "key", "upstream", "alpn", "log")
PLACEHOLDER = re.compile(r"\{(\w*)\}")


# Metadata of keys: one marks keys that apply to a single transport, the other keys that only some servers support,
# which list them in `choices` (`servers.contract`).
TRANSPORT, CHOICE = "transport", "choice"
_TCP, _QUIC = {TRANSPORT: "tcp"}, {TRANSPORT: "quic"}
_CHOICE = {CHOICE: True}


@dataclass(frozen=True)
class Protocol:
    """One protocol setting (paper, Table 1); `protocols.toml` explains the keys."""

    name: str
    transport: str
    congestion_control: str
    initial_window_packets: int
    pacing: bool
    connection_options: tuple[str, ...] = field(default=(), metadata=_QUIC)
    tls_group: str = BROWSERS_GROUP
    known_servers: bool | None = None
    backup_connections: bool | None = field(default=None, metadata=_TCP)
    early_data: bool = False
    fast_open: bool = field(default=False, metadata=_TCP)
    mss_bytes: int | None = field(default=None, metadata=_TCP)
    notsent_lowat_bytes: int | None = field(default=None, metadata=_TCP)
    tls_record_bytes: int | None = field(default=None, metadata=_TCP | _CHOICE)
    emulated_connections: int | None = field(default=None, metadata=_QUIC | _CHOICE)
    scheduler: str | None = field(default=None, metadata=_QUIC | _CHOICE)
    max_window_packets: int | None = field(default=None, metadata=_QUIC | _CHOICE)
    server_sysctls: Mapping[str, str] = field(default_factory=dict, metadata=_TCP)
    client_sysctls: Mapping[str, str] = field(default_factory=dict, metadata=_TCP)
    server: str = ""
    program: tuple[str, ...] | None = None
    program_version: str | None = None
    alternative: str | None = None
    discovery: str | None = None
    alternative_settings: Mapping[str, Any] | None = field(default=None, metadata=DERIVED)

    def __post_init__(self) -> None:
        if not self.server and self.program:
            object.__setattr__(self, "server", Path(self.program[0]).name)
        if not self.server and self.transport in TRANSPORTS:
            object.__setattr__(self, "server", TRANSPORTS[self.transport].default_server)

    def given(self, what: str) -> dict[str, Any]:
        """The keys with this metadata (`TRANSPORT` or `CHOICE`) whose value differs from the default, and their
        metadata."""
        return {
            one.name: one.metadata[what]
            for one in fields(self)
            if what in one.metadata and getattr(self, one.name) != _default(one)
        }

    @property
    def http_version(self) -> str:
        """The version of HTTP that uses it, as ALPN names it: h2 or h3."""
        return TRANSPORTS[self.transport].http_version

    @property
    def in_kernel(self) -> bool:
        """Whether the kernel's TCP carries it, and must be set up."""
        return TRANSPORTS[self.transport].in_kernel

    @property
    def alternative_service(self) -> "Protocol | None":
        """The protocol that the same servers also speak, which the browser may discover and use instead; usually
        None."""
        if self.alternative_settings is None:
            return None
        return structured(dict(self.alternative_settings), Protocol, f"the alternative of {self.name}")

    def with_alternative(self, other: "Protocol") -> "Protocol":
        """This protocol, with servers that also speak `other`."""
        return replace(self, alternative_settings=unstructured(other))

    @property
    def announces_alternative(self) -> bool:
        """Whether each response announces the alternative. With discovery by HTTPS records, only these announce it."""
        return self.discovery in (ALT_SVC, VISIT_BEFORE)

    @property
    def has_known_alternative(self) -> bool:
        """Whether the browser knows of the alternative when it requests the page."""
        return self.discovery in (VISIT_BEFORE, HTTPS_RECORD)

    @property
    def services(self) -> tuple["Protocol", ...]:
        """All protocols that its servers speak: itself, and the alternative if there is one."""
        other = self.alternative_service
        return (self, other) if other else (self,)

    @property
    def http_versions(self) -> tuple[str, ...]:
        """The versions of HTTP that requests may use."""
        return tuple(one.http_version for one in self.services)

    @property
    def browser_knows_servers(self) -> bool:
        """Whether the browser knows, before its first request, that every server speaks this version of HTTP."""
        return self.known_servers if self.known_servers is not None else TRANSPORTS[self.transport].must_be_known

    @property
    def segment_bytes(self) -> int:
        """The bytes of data in a full TCP segment with time stamps (RFC 7323)."""
        return (self.mss_bytes or LARGEST_MSS_BYTES) - TIMESTAMPS_BYTES

    @property
    def needs_hello_retry(self) -> bool:
        """Whether servers answer a ClientHello by a HelloRetryRequest, since it has no key share for their group."""
        return self.tls_group != BROWSERS_GROUP

    @property
    def round_trips_before_request(self) -> int:
        """The round trips of a connection before its first request is sent (RFC 8446, RFC 9001).

        TCP Fast Open saves none: the browser's ClientHello has a key share for a post-quantum group, and does not fit
        into a SYN.
        """
        return TRANSPORTS[self.transport].handshake_round_trips + self.needs_hello_retry - self.early_data

    @property
    def server_kernel(self) -> dict[str, str]:
        """All kernel settings of the servers' namespace."""
        fast_open = {TCP_FAST_OPEN: FAST_OPEN_SERVER} if self.fast_open else {}
        lowat = {TCP_NOTSENT_LOWAT: str(self.notsent_lowat_bytes)} if self.notsent_lowat_bytes else {}
        return {**self.server_sysctls, **fast_open, **lowat}

    @property
    def client_kernel(self) -> dict[str, str]:
        """All kernel settings of the browser's namespace."""
        return {**self.client_sysctls, **({TCP_FAST_OPEN: FAST_OPEN_CLIENT} if self.fast_open else {})}

    @property
    def restarts_after_idle(self) -> bool:
        """Whether the servers return to the initial window after a pause (RFC 5681 section 4.1)."""
        sysctl = self.server_sysctls.get("net.ipv4.tcp_slow_start_after_idle", "1")  # Linux's default
        return self.in_kernel and sysctl != "0"


def _default(key: Field[Any]) -> Any:
    return key.default if key.default_factory is MISSING else key.default_factory()


def _checked(protocol: Protocol) -> Protocol:
    """`protocol`, checked, with the browser's knowledge of servers. Raises ValueError with a fault that exists for
    every server."""
    if protocol.transport not in TRANSPORTS:
        raise ValueError(f"transport must be one of {', '.join(TRANSPORTS)}, not {protocol.transport!r}")
    if protocol.initial_window_packets < 1:
        raise ValueError(f"initial_window_packets must be at least 1, not {protocol.initial_window_packets}")
    if protocol.max_window_packets is not None and not (
        protocol.initial_window_packets <= protocol.max_window_packets <= MOST_WINDOW_PACKETS
    ):
        least = protocol.initial_window_packets
        raise ValueError(
            f"max_window_packets must be from {least}, the initial window, to {MOST_WINDOW_PACKETS}, not "
            f"{protocol.max_window_packets}"
        )
    if any(len(tag) != 4 for tag in protocol.connection_options):
        raise ValueError("connection_options must be a list of tags of four letters")
    if protocol.tls_group not in TLS_GROUPS:
        raise ValueError(f"tls_group must be one of {', '.join(TLS_GROUPS)}, not {protocol.tls_group!r}")
    if protocol.early_data and protocol.tls_group != BROWSERS_GROUP:
        raise ValueError(
            f"early_data needs tls_group {BROWSERS_GROUP}: a HelloRetryRequest rejects it (RFC 8446 section 4.2.10)"
        )
    _check_alternative(protocol)
    _check_program(protocol)
    for key, transport in protocol.given(TRANSPORT).items():
        if transport != protocol.transport:
            raise ValueError(f"{key} is for transport {transport}")
    _check_kernel_settings(protocol)
    if protocol.browser_knows_servers:
        # State it explicitly, so that a campaign from the time when browsers knew nothing is not resumed as if it were
        # the same.
        return replace(protocol, known_servers=True)
    return protocol


def _check_alternative(protocol: Protocol) -> None:
    if (protocol.alternative is None) != (protocol.discovery is None):
        raise ValueError(
            "give alternative and discovery together: the other protocol of the servers, and how browsers find it"
        )
    if protocol.alternative is None:
        return
    if protocol.discovery not in DISCOVERIES:
        raise ValueError(f"discovery must be one of {', '.join(DISCOVERIES)}, not {protocol.discovery!r}")
    if not protocol.in_kernel:
        raise ValueError("alternative is for transport tcp, which a browser begins with")
    if protocol.early_data or protocol.known_servers:
        raise ValueError("a protocol with an alternative has neither early_data nor known_servers")


def _check_program(protocol: Protocol) -> None:
    if protocol.program is None:
        if protocol.program_version is not None:
            raise ValueError("program_version is for a program")
        return
    if not protocol.program:
        raise ValueError("program must be a list of words: the path of a program, and its options")
    for name in PLACEHOLDER.findall(" ".join(protocol.program)):
        if name not in PLACEHOLDERS:
            known = ", ".join(f"{{{one}}}" for one in PLACEHOLDERS)
            raise ValueError(f"program has an unknown placeholder {{{name}}}; there are {known}")


def _with_whole_paths(table: dict[str, Any], file: Path) -> dict[str, Any]:
    """`table` of `file`, where words of `program` that begin with ./, ../ (from the file's folder) or ~/ are absolute
    paths."""
    if not isinstance(program := table.get("program"), list):
        return table
    return {**table, "program": [_whole_path(word, file) if isinstance(word, str) else word for word in program]}


def _whole_path(word: str, file: Path) -> str:
    if word.startswith(("./", "../")):
        return str((file.parent / word).resolve())
    return str(Path(word).expanduser()) if word.startswith("~/") else word


def _check_kernel_settings(protocol: Protocol) -> None:
    if protocol.in_kernel and not KERNELS_NAME.fullmatch(protocol.congestion_control):
        raise ValueError(
            f"congestion_control must be a name that the kernel can have, not {protocol.congestion_control!r}"
        )
    lowat_bytes = protocol.notsent_lowat_bytes
    if lowat_bytes is not None and not 1 <= lowat_bytes < NOTSENT_LOWAT_LIMIT_BYTES:
        raise ValueError(f"notsent_lowat_bytes must be from 1 to {NOTSENT_LOWAT_LIMIT_BYTES - 1}, not {lowat_bytes}")
    if lowat_bytes is not None and TCP_NOTSENT_LOWAT in protocol.server_sysctls:
        raise ValueError(f"notsent_lowat_bytes and {TCP_NOTSENT_LOWAT} of server_sysctls are the same setting")
    mss_bytes = protocol.mss_bytes
    if mss_bytes is not None and not LEAST_MSS_BYTES <= mss_bytes <= LARGEST_MSS_BYTES:
        raise ValueError(f"mss_bytes must be from {LEAST_MSS_BYTES} to {LARGEST_MSS_BYTES}, not {mss_bytes}")
    record_bytes = protocol.tls_record_bytes
    if record_bytes is not None and not LEAST_RECORD_BYTES <= record_bytes <= LARGEST_RECORD_BYTES:
        allowed = f"from {LEAST_RECORD_BYTES} to {LARGEST_RECORD_BYTES}"
        raise ValueError(f"tls_record_bytes must be {allowed}, not {record_bytes}")
    for name in SYSCTLS:
        if any(not key.startswith("net.") for key in getattr(protocol, name)):
            raise ValueError(f"{name} must map names under net. to text")


_READER = Reader(FILENAME, Protocol, _checked, {"initial_window_packets": "packets"}, _with_whole_paths)


def load(file: Path | None = None) -> Catalogue[Protocol]:
    """Every protocol by name: those of `file`, or all. Raises EyelevelError."""
    catalogue = _READER.load(file)
    for name, protocol in catalogue.items():
        if (wanted := protocol.alternative) is not None:
            known = catalogue if wanted in catalogue or file is None else _READER.load()
            other = known.get(wanted)
            if other is None or other.in_kernel or other.early_data:
                raise EyelevelError(
                    f"{catalogue.places[name]}: alternative must be a protocol of transport quic without early_data, "
                    f"not {wanted!r}"
                )
            catalogue[name] = protocol.with_alternative(other)
    return catalogue
