"""Serving a site over QUIC and HTTP/3: our `quic_server`, which has a process for each server address and port."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from base.jail import jailed
from base.places import tool
from base.processes import running
from servers.contract import Server, Serving
from servers.endpoints import write_endpoints
from servers.qlog import read_qlogs
from tuning.protocols import Protocol

# The tags by which it chooses its congestion control.
CONTROL_TAGS = {"cubic": "BYTE", "bbr": "TBBR", "bbr2": "B2ON"}
# Its initial window unless a tag IW… says another; quiche counts windows in segments of so many bytes.
WINDOW_PACKETS = 32
SEGMENT_BYTES = 1460
# Its schedulers, and the numbers of connections that its Cubic behaves as; its own unless a protocol says another.
SCHEDULERS = ("urgency", "urgency-incremental", "urgency-first-come", "fair", "first-come")
OWN_SCHEDULER = "urgency"
EMULATED_CONNECTIONS = tuple(range(1, 11))
OWN_EMULATED_CONNECTIONS = 2


class QuicServer(Server):
    """Our server around Chromium's QUIC, which does what the browser's connection options say."""

    name = "quic_server"
    transports = ("quic",)
    congestion_controls = tuple(CONTROL_TAGS)
    programs: ClassVar = {"quic_server": "--version"}
    logs_connections = True
    schedulers = SCHEDULERS
    emulated_connections = EMULATED_CONNECTIONS
    limits_window = True
    # Cubic, as `SetCongestionControlDefaults` has it (servers/quic/replay_server.cc).
    options_by_itself = (CONTROL_TAGS["cubic"],)

    @contextmanager
    def serve(self, serving: Serving) -> Iterator[None]:
        command = jailed(serving.jail(), _command(serving, write_endpoints(serving)))
        with running("quic_server", command, serving.folder / "quic_server.log", stdout=subprocess.PIPE) as servers:
            for _ in serving.listening():  # it prints a line for each when it can serve there
                servers.first_line()
            yield

    def congestion_controls_taken(self, folder: Path) -> set[str]:
        return {str(log.parameters.get("congestion_control")) for log in read_qlogs(folder)}

    def refusal(self, protocol: Protocol) -> str | None:
        if fault := super().refusal(protocol):
            return fault
        if not protocol.pacing:
            return "pacing of quic is true: quic_server always paces"
        control, packets = protocol.congestion_control, protocol.initial_window_packets
        if protocol.emulated_connections is not None and control != "cubic":
            return f"emulated_connections is for congestion_control cubic: {control} has no such number"
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

    def window_segment_bytes(self, protocol: Protocol) -> int:
        return SEGMENT_BYTES

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


def _command(serving: Serving, endpoints: Path) -> list[str | Path]:
    command: list[str | Path] = [tool("quic_server"), "--endpoints", endpoints, "--responses", serving.content]
    # Its own are given, too, since what is its own may change from version to version.
    protocol = serving.protocol
    command += ["--emulated-connections", str(SERVER.cubic_connections(protocol))]
    if protocol.max_window_packets is not None:
        command += ["--max-window", str(protocol.max_window_packets)]
    command += ["--scheduler", _scheduler(protocol), "--tls-group", protocol.tls_group]
    if serving.request_log:
        command += ["--request-log", serving.request_log]
    if serving.qlog:
        command += ["--qlog", serving.qlog]
    if serving.think_time:
        command.append("--think-time")
    return command
