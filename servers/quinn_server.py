"""Serving a site over QUIC and HTTP/3 by our `quinn_server` (Rust, in `servers/quinn/`): one process for all addresses.

Beside quic_server it is another implementation of QUIC. What it does as quic_server does, and what not, is in
`servers/quinn/README.md`.
"""

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

# quinn counts windows in bytes. One is made of segments as long as quiche's, so that as many have as many bytes.
SEGMENT_BYTES = 1460
# Its order of service, by the name of quic_server's scheduler that is like it: responses take turns, of a packet each.
ORDER_OF_SERVICE = "fair"


# Two of the longest that it sends, below which quinn does not go.
LEAST_WINDOW_PACKETS = 2


class QuinnServer(Server):
    """Our server around quinn and h3, which is told all of its command line: browsers' connection options mean nothing
    to it."""

    name = "quinn"
    transports = ("quic",)
    congestion_controls = ("cubic", "reno")
    programs: ClassVar = {"quinn_server": "--version"}
    logs_connections = True
    emulated_connections = (1,)
    # quinn paces by the smoothed round trip, which is still that of the queue before the loss.
    fills_window_after_loss = False

    @contextmanager
    def serve(self, serving: Serving) -> Iterator[None]:
        command = jailed(serving.jail(), _command(serving, write_endpoints(serving)))
        with running("quinn_server", command, serving.folder / "quinn_server.log", stdout=subprocess.PIPE) as server:
            for _ in serving.listening():  # it prints a line for each when it can serve there
                server.first_line()
            yield

    def congestion_controls_taken(self, folder: Path) -> set[str]:
        return {str(log.parameters.get("congestion_control")) for log in read_qlogs(folder)}

    def refusal(self, protocol: Protocol) -> str | None:
        if fault := super().refusal(protocol):
            return fault
        if not protocol.pacing:
            return "pacing of quic is true: quinn always paces"
        if protocol.initial_window_packets < LEAST_WINDOW_PACKETS:
            return f"the initial window of quinn is at least {LEAST_WINDOW_PACKETS} packets"
        if protocol.emulated_connections is not None and protocol.congestion_control != "cubic":
            control = protocol.congestion_control
            return f"emulated_connections is for congestion_control cubic: {control} has no such number"
        if protocol.connection_options:
            return f"connection_options have {protocol.connection_options[0]}, which means nothing to quinn"
        return None

    def order_of_service(self, protocol: Protocol) -> str | None:
        return ORDER_OF_SERVICE

    def window_segment_bytes(self, protocol: Protocol) -> int:
        return SEGMENT_BYTES


SERVER = QuinnServer()


def _command(serving: Serving, endpoints: Path) -> list[str | Path]:
    protocol = serving.protocol
    command: list[str | Path] = [tool("quinn_server"), "--endpoints", endpoints, "--responses", serving.content]
    command += ["--congestion-control", protocol.congestion_control, "--tls-group", protocol.tls_group]
    command += ["--initial-window", str(protocol.initial_window_packets * SEGMENT_BYTES)]
    if protocol.early_data:
        command.append("--early-data")
    if serving.request_log:
        command += ["--request-log", serving.request_log]
    if serving.qlog:
        command += ["--qlog", serving.qlog]
    if serving.think_time:
        command.append("--think-time")
    return command
