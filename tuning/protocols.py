"""Protocol settings: `protocols.toml` as values.

A protocol is a value: it travels to servers, emulated network and browser as it is, and nobody looks its name up again.
The server itself knows what it cannot do (`servers.contract`).
"""

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
    """The properties that follow from the transport alone.

    `handshake_round_trips`: what a connection costs before its first request leaves (RFC 8446, RFC 9001).
    `in_kernel`: whether the kernel does it, so that its settings are the kernel's.
    `default_server`: who serves it where a protocol does not say.
    `must_be_known`: whether the browser must have learnt that a server speaks it before it can use it.
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
# TCP Fast Open for all that listen and all that connect, without the cookie of a visit before (Linux's ip-sysctl.rst).
TCP_FAST_OPEN = "net.ipv4.tcp_fastopen"
FAST_OPEN_SERVER, FAST_OPEN_CLIENT = str(0x2 | 0x200 | 0x400), str(0x1 | 0x4)
# How much of what was written to a socket the kernel holds unsent before the socket takes more (Linux's ip-sysctl.rst).
TCP_NOTSENT_LOWAT = "net.ipv4.tcp_notsent_lowat"
NOTSENT_LOWAT_LIMIT_BYTES = 1 << 32  # the kernel holds it in 32 bits, all of them set for "no limit"
SYSCTLS = ("server_sysctls", "client_sysctls")
# The maximum segment size in packets of 1500 bytes, the least that Linux takes, and what time stamps take of it.
LARGEST_MSS_BYTES, LEAST_MSS_BYTES, TIMESTAMPS_BYTES = 1460, 536, 12
# The most packets of a congestion window: 1.2 Gbit/s at a round trip of a second.
MOST_WINDOW_PACKETS = 100_000
# The most that a TLS record carries (RFC 8446, section 5.1), and the least that a server is made to send.
LARGEST_RECORD_BYTES, LEAST_RECORD_BYTES = 16384, 512
# For the key exchange. The browser sends a share for one of those that the servers have.
TLS_GROUPS = ("X25519", "P-256", "P-384")
BROWSERS_GROUP = "X25519"
# How a browser finds out that servers speak another protocol, too: by a header field of their responses (RFC 7838),
# from what it has kept of a visit before, or from the name server (RFC 9460).
ALT_SVC, VISIT_BEFORE, HTTPS_RECORD = "alt-svc", "visit-before", "https-record"
DISCOVERIES = (ALT_SVC, VISIT_BEFORE, HTTPS_RECORD)


# The metadata of a key that has a meaning over one transport alone, and of one that only those servers take that have
# it among their `choices` (`servers.contract`).
TRANSPORT, CHOICE = "transport", "choice"
_TCP, _QUIC = {TRANSPORT: "tcp"}, {TRANSPORT: "quic"}
_CHOICE = {CHOICE: True}


@dataclass(frozen=True)
class Protocol:
    """One protocol setting (paper, Table 1); the keys are explained in `protocols.toml`."""

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
    alternative: str | None = None
    discovery: str | None = None
    alternative_settings: Mapping[str, Any] | None = field(default=None, metadata=DERIVED)

    def __post_init__(self) -> None:
        if not self.server and self.transport in TRANSPORTS:
            object.__setattr__(self, "server", TRANSPORTS[self.transport].default_server)

    def given(self, what: str) -> dict[str, Any]:
        """The keys with this metadata (`TRANSPORT` or `CHOICE`) that have another value than their default, and that
        metadata."""
        return {
            one.name: one.metadata[what]
            for one in fields(self)
            if what in one.metadata and getattr(self, one.name) != _default(one)
        }

    @property
    def http_version(self) -> str:
        """The version of HTTP that goes over it, as ALPN names it: h2 or h3."""
        return TRANSPORTS[self.transport].http_version

    @property
    def in_kernel(self) -> bool:
        """Whether the kernel's TCP carries it, which then is to be set up."""
        return TRANSPORTS[self.transport].in_kernel

    @property
    def alternative_service(self) -> "Protocol | None":
        """The protocol that the same servers speak, too, which the browser may find and use instead; None of most."""
        if self.alternative_settings is None:
            return None
        return structured(dict(self.alternative_settings), Protocol, f"the alternative of {self.name}")

    def with_alternative(self, other: "Protocol") -> "Protocol":
        """This protocol, with servers that also speak `other`."""
        return replace(self, alternative_settings=unstructured(other))

    @property
    def announces_alternative(self) -> bool:
        """Whether each response says that there is an alternative. One that has HTTPS records has them alone."""
        return self.discovery in (ALT_SVC, VISIT_BEFORE)

    @property
    def has_known_alternative(self) -> bool:
        """Whether the browser knows of the alternative when it asks for the page."""
        return self.discovery in (VISIT_BEFORE, HTTPS_RECORD)

    @property
    def http_versions(self) -> tuple[str, ...]:
        """The versions of HTTP that requests may use."""
        other = self.alternative_service
        return (self.http_version, *([other.http_version] if other else ()))

    @property
    def browser_knows_servers(self) -> bool:
        """Whether the browser knows of every server, before it asks, that it speaks this version of HTTP."""
        return self.known_servers if self.known_servers is not None else TRANSPORTS[self.transport].must_be_known

    @property
    def segment_bytes(self) -> int:
        """The bytes that a full segment of TCP carries besides its time stamps (RFC 7323)."""
        return (self.mss_bytes or LARGEST_MSS_BYTES) - TIMESTAMPS_BYTES

    @property
    def needs_hello_retry(self) -> bool:
        """Whether servers answer a ClientHello by a HelloRetryRequest, since it has no share for their group."""
        return self.tls_group != BROWSERS_GROUP

    @property
    def round_trips_before_request(self) -> int:
        """The round trips that a connection costs before its first request leaves (RFC 8446, RFC 9001).

        TCP Fast Open saves nothing: the browser's ClientHello, which has a key share for a post-quantum group, does
        not fit into a SYN.
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
        """Whether the servers begin anew with the initial window after a pause (RFC 5681 section 4.1)."""
        sysctl = self.server_sysctls.get("net.ipv4.tcp_slow_start_after_idle", "1")  # as Linux has it
        return self.in_kernel and sysctl != "0"


def _default(key: Field[Any]) -> Any:
    return key.default if key.default_factory is MISSING else key.default_factory()


def _checked(protocol: Protocol) -> Protocol:
    """`protocol`, checked, with what browsers know. Raises ValueError with what is wrong with it, whoever serves it."""
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
    for key, transport in protocol.given(TRANSPORT).items():
        if transport != protocol.transport:
            raise ValueError(f"{key} is for transport {transport}")
    _check_kernel_settings(protocol)
    if protocol.browser_knows_servers:
        # Said, so that a campaign that was begun when browsers knew nothing is not continued as if it were the same.
        return replace(protocol, known_servers=True)
    return protocol


def _check_alternative(protocol: Protocol) -> None:
    if (protocol.alternative is None) != (protocol.discovery is None):
        raise ValueError("alternative and discovery belong together: what servers speak, too, and how browsers find it")
    if protocol.alternative is None:
        return
    if protocol.discovery not in DISCOVERIES:
        raise ValueError(f"discovery must be one of {', '.join(DISCOVERIES)}, not {protocol.discovery!r}")
    if not protocol.in_kernel:
        raise ValueError("alternative is for transport tcp, which a browser begins with")
    if protocol.early_data or protocol.known_servers:
        raise ValueError("a protocol with an alternative has neither early_data nor known_servers")


def _check_kernel_settings(protocol: Protocol) -> None:
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


_READER = Reader(FILENAME, Protocol, _checked, {"initial_window_packets": "packets"})


def load(file: Path | None = None) -> Catalogue[Protocol]:
    """Every protocol by name: those of `file`, or all that there are. Raises EyelevelError."""
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
