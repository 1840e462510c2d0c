"""Protocol settings: `protocols.toml` as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tuning.settings import Settings, load_all, load_tables

FILENAME = "protocols.toml"

TRANSPORTS = ("tcp", "quic")
CONGESTION_CONTROLS = ("cubic", "bbr")


@dataclass(frozen=True)
class Protocol:
    """One protocol setting (paper, Table 1); the keys are explained in `protocols.toml`."""

    name: str
    transport: str
    congestion_control: str
    initial_window_packets: int
    pacing: bool
    connection_options: tuple[str, ...] = ()
    server_sysctls: Mapping[str, str] = field(default_factory=dict)
    client_sysctls: Mapping[str, str] = field(default_factory=dict)


def load(file: Path | None = None) -> Settings[Protocol]:
    """Every protocol by name: those of `file`, or all that there are. Raises EyelevelError."""
    return load_all(FILENAME, _read) if file is None else _read(file)


def _read(file: Path) -> Settings[Protocol]:
    return load_tables(file, Protocol, _fault, {"initial_window_packets": "packets"})


def _fault(protocol: Protocol) -> str | None:
    if protocol.transport not in TRANSPORTS:
        return f"transport must be one of {', '.join(TRANSPORTS)}, not {protocol.transport!r}"
    if protocol.congestion_control not in CONGESTION_CONTROLS:
        return (
            f"congestion_control must be one of {', '.join(CONGESTION_CONTROLS)}, not {protocol.congestion_control!r}"
        )
    window = protocol.initial_window_packets
    if isinstance(window, bool) or not isinstance(window, int) or window < 1:
        return f"initial_window_packets must be a whole number of at least 1, not {window!r}"
    if not isinstance(protocol.pacing, bool):
        return f"pacing must be true or false, not {protocol.pacing!r}"
    if any(not isinstance(tag, str) or len(tag) != 4 for tag in protocol.connection_options):
        return "connection_options must be a list of tags of four letters"
    if protocol.transport == "tcp" and protocol.connection_options:
        return "connection_options are for transport quic"
    for name, sysctls in (("server_sysctls", protocol.server_sysctls), ("client_sysctls", protocol.client_sysctls)):
        if any(not key.startswith("net.") or not isinstance(value, str) for key, value in sysctls.items()):
            return f"{name} must map names under net. to text"
    return None
