"""Serves a site over QUIC and HTTP/3 with our `quic_server`: one process for each server address and port."""

from typing import ClassVar

from servers.own_quic import OwnQuicServer
from tuning.protocols import Protocol

# The tags with which a client chooses the congestion control.
CONTROL_TAGS = {"cubic": "BYTE", "bbr": "TBBR", "bbr2": "B2ON"}
# The default initial window of quic_server; a tag IW… sets another.
WINDOW_PACKETS = 32
# The schedulers of quic_server, and the numbers of connections that its Cubic can emulate. Defaults apply unless a
# protocol sets others.
SCHEDULERS = ("urgency", "urgency-incremental", "urgency-first-come", "fair", "first-come")
OWN_SCHEDULER = "urgency"
EMULATED_CONNECTIONS = tuple(range(1, 11))
OWN_EMULATED_CONNECTIONS = 2


class QuicServer(OwnQuicServer):
    """Our server based on Chromium's QUIC; it follows the browser's connection options."""

    name = "quic_server"
    congestion_controls = tuple(CONTROL_TAGS)
    programs: ClassVar = {"quic_server": "--version"}
    choices: ClassVar = {
        "scheduler": SCHEDULERS,
        "emulated_connections": EMULATED_CONNECTIONS,
        "max_window_packets": None,
    }
    # Cubic is the default (`SetCongestionControlDefaults` in servers/quic/replay_server.cc).
    options_by_itself = (CONTROL_TAGS["cubic"],)

    def arguments(self, protocol: Protocol) -> list[str]:
        # Pass defaults explicitly, since they may change from version to version.
        connections, most = str(self.cubic_connections(protocol)), protocol.max_window_packets
        limit = [] if most is None else ["--max-window", str(most)]
        return ["--emulated-connections", connections, *limit, "--scheduler", _scheduler(protocol)]

    def refusal(self, protocol: Protocol) -> str | None:
        if fault := super().refusal(protocol):
            return fault
        control, packets = protocol.congestion_control, protocol.initial_window_packets
        needed = _needed_options(protocol)
        for tag in protocol.connection_options:
            if tag in CONTROL_TAGS.values() and tag not in needed:
                return f"connection_options have {tag}, which is not {control}'s tag ({CONTROL_TAGS[control]})"
            if tag.startswith("IW") and tag not in needed:
                return f"connection_options have {tag}, which is not an initial window of {packets} packets"
        return None

    def connection_options(self, protocol: Protocol) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*_needed_options(protocol), *protocol.connection_options)))

    def order_of_service(self, protocol: Protocol) -> str | None:
        return _scheduler(protocol)

    def cubic_connections(self, protocol: Protocol) -> int:
        return protocol.emulated_connections or OWN_EMULATED_CONNECTIONS


SERVER = QuicServer()


def _needed_options(protocol: Protocol) -> tuple[str, ...]:
    """The tags for congestion control and initial window."""
    packets = protocol.initial_window_packets
    window = () if packets == WINDOW_PACKETS else (f"IW{packets:02}",)
    return (CONTROL_TAGS[protocol.congestion_control], *window)


def _scheduler(protocol: Protocol) -> str:
    return protocol.scheduler or OWN_SCHEDULER
