"""Protocol settings: `protocols.toml` as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tuning.settings import Settings, load_all, load_tables

FILENAME = "protocols.toml"

TRANSPORTS = ("tcp", "quic")
CONGESTION_CONTROLS = {"tcp": ("cubic", "bbr"), "quic": ("cubic", "bbr", "bbr2")}
# TCP Fast Open for all that listen and all that connect, without the cookie of a visit before (Linux's ip-sysctl.rst).
TCP_FAST_OPEN = "net.ipv4.tcp_fastopen"
FAST_OPEN_SERVER, FAST_OPEN_CLIENT = str(0x2 | 0x200 | 0x400), str(0x1 | 0x4)
# The maximum segment size in packets of 1500 bytes, the least that Linux takes, and what time stamps take of it.
LARGEST_MSS_BYTES, LEAST_MSS_BYTES, TIMESTAMPS_BYTES = 1460, 536, 12
# For the key exchange. The browser sends a share for one of those that the servers have.
TLS_GROUPS = ("X25519", "P-256", "P-384")
BROWSERS_GROUP = "X25519"
# What tells quic_server its congestion control and its initial window, unless this is quiche's own.
QUIC_CONTROL_TAGS = {"cubic": "BYTE", "bbr": "TBBR", "bbr2": "B2ON"}
QUIC_WINDOW_PACKETS = 32


@dataclass(frozen=True)
class Protocol:
    """One protocol setting (paper, Table 1); the keys are explained in `protocols.toml`."""

    name: str
    transport: str
    congestion_control: str
    initial_window_packets: int
    pacing: bool
    connection_options: tuple[str, ...] = ()
    tls_group: str = "X25519"
    early_data: bool = False
    fast_open: bool = False
    mss_bytes: int | None = None
    server_sysctls: Mapping[str, str] = field(default_factory=dict)
    client_sysctls: Mapping[str, str] = field(default_factory=dict)

    @property
    def segment_bytes(self) -> int:
        """What a full segment of TCP carries beside its time stamps (RFC 7323)."""
        return (self.mss_bytes or LARGEST_MSS_BYTES) - TIMESTAMPS_BYTES

    @property
    def round_trips_before_request(self) -> int:
        """What a connection costs before its first request leaves (RFC 8446, RFC 9001).

        TCP Fast Open saves nothing: the browser's ClientHello, which has a key share for a post-quantum group, does
        not fit into a SYN.
        """
        retry = self.tls_group != BROWSERS_GROUP  # a HelloRetryRequest, since the browser sends no share for it
        return {"tcp": 2, "quic": 1}[self.transport] + retry - self.early_data

    @property
    def server_kernel(self) -> dict[str, str]:
        """All kernel settings of the servers' namespace."""
        return {**self.server_sysctls, **({TCP_FAST_OPEN: FAST_OPEN_SERVER} if self.fast_open else {})}

    @property
    def client_kernel(self) -> dict[str, str]:
        """All kernel settings of the browser's namespace."""
        return {**self.client_sysctls, **({TCP_FAST_OPEN: FAST_OPEN_CLIENT} if self.fast_open else {})}

    @property
    def restarts_after_idle(self) -> bool:
        """Whether the servers begin anew with the initial window after a pause (RFC 5681 section 4.1)."""
        sysctl = self.server_sysctls.get("net.ipv4.tcp_slow_start_after_idle", "1")  # as Linux has it
        return self.transport == "tcp" and sysctl != "0"


def load(file: Path | None = None) -> Settings[Protocol]:
    """Every protocol by name: those of `file`, or all that there are. Raises EyelevelError."""
    return load_all(FILENAME, _read) if file is None else _read(file)


def _read(file: Path) -> Settings[Protocol]:
    return load_tables(file, Protocol, _fault, {"initial_window_packets": "packets"})


def _fault(protocol: Protocol) -> str | None:
    if protocol.transport not in TRANSPORTS:
        return f"transport must be one of {', '.join(TRANSPORTS)}, not {protocol.transport!r}"
    controls = CONGESTION_CONTROLS[protocol.transport]
    if protocol.congestion_control not in controls:
        return f"congestion_control must be one of {', '.join(controls)}, not {protocol.congestion_control!r}"
    window = protocol.initial_window_packets
    if isinstance(window, bool) or not isinstance(window, int) or window < 1:
        return f"initial_window_packets must be a whole number of at least 1, not {window!r}"
    for key in ("pacing", "early_data", "fast_open"):
        if not isinstance(getattr(protocol, key), bool):
            return f"{key} must be true or false, not {getattr(protocol, key)!r}"
    if any(not isinstance(tag, str) or len(tag) != 4 for tag in protocol.connection_options):
        return "connection_options must be a list of tags of four letters"
    if protocol.tls_group not in TLS_GROUPS:
        return f"tls_group must be one of {', '.join(TLS_GROUPS)}, not {protocol.tls_group!r}"
    if protocol.early_data and protocol.tls_group != BROWSERS_GROUP:
        return f"early_data needs tls_group {BROWSERS_GROUP}: a HelloRetryRequest rejects it (RFC 8446 section 4.2.10)"
    if (mss := protocol.mss_bytes) is not None:
        if protocol.transport != "tcp":
            return "mss_bytes is for transport tcp"
        if isinstance(mss, bool) or not isinstance(mss, int) or not LEAST_MSS_BYTES <= mss <= LARGEST_MSS_BYTES:
            return f"mss_bytes must be a whole number from {LEAST_MSS_BYTES} to {LARGEST_MSS_BYTES}, not {mss!r}"
    if protocol.transport == "quic":
        return _quic_fault(protocol)
    if protocol.connection_options:
        return "connection_options are for transport quic"
    for name, sysctls in (("server_sysctls", protocol.server_sysctls), ("client_sysctls", protocol.client_sysctls)):
        if any(not key.startswith("net.") or not isinstance(value, str) for key, value in sysctls.items()):
            return f"{name} must map names under net. to text"
    return None


def _quic_fault(protocol: Protocol) -> str | None:
    """What quic_server would not do as it is told."""
    if protocol.tls_group != BROWSERS_GROUP:
        return f"tls_group of quic is {BROWSERS_GROUP}: quic_server has no other"
    if protocol.fast_open:
        return "fast_open is for transport tcp"
    if not protocol.pacing:
        return "pacing of quic is true: quic_server always paces"
    if protocol.server_sysctls or protocol.client_sysctls:
        return "server_sysctls and client_sysctls are for transport tcp"
    wanted = QUIC_CONTROL_TAGS[protocol.congestion_control]
    if [tag for tag in protocol.connection_options if tag in QUIC_CONTROL_TAGS.values()] != [wanted]:
        return f"connection_options must have {wanted} for {protocol.congestion_control}, and no other's tag"
    packets = protocol.initial_window_packets
    windows = [] if packets == QUIC_WINDOW_PACKETS else [f"IW{packets:02}"]
    if [tag for tag in protocol.connection_options if tag.startswith("IW")] != windows:
        return f"connection_options must have {windows[0] if windows else 'no IW tag'} for {packets} packets"
    return None
