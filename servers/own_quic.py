"""Serves a site over QUIC and HTTP/3 with one of our programs: `quic_server` or `quinn_server`. An option that both
have is the same on both command lines."""

import subprocess
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from base.jail import jailed
from base.places import tool
from base.processes import running
from base.qlog import read_qlogs
from servers.contract import Server, Serving
from servers.endpoints import write_endpoints
from tuning.protocols import Protocol

# The segment size with which quiche counts windows. Our other servers use the same, so that equal numbers mean equal
# bytes.
SEGMENT_BYTES = 1460


class OwnQuicServer(Server):
    """A server with one program, which serves all addresses and logs its connections."""

    transports = ("quic",)
    logs_connections = True

    @abstractmethod
    def arguments(self, protocol: Protocol) -> list[str]:
        """The command-line options of the program for `protocol`, in addition to the TLS group."""

    @contextmanager
    def serve(self, serving: Serving) -> Iterator[None]:
        (program,) = self.programs
        command = jailed(serving.jail(), [tool(program), *self._options(serving)])
        with running(program, command, serving.folder / f"{program}.log", stdout=subprocess.PIPE) as servers:
            for _ in serving.listening():  # the program prints a line for each endpoint once it serves there
                servers.first_line()
            yield

    def congestion_controls_taken(self, folder: Path) -> set[str]:
        return {str(log.parameters.get("congestion_control")) for log in read_qlogs(folder)}

    def refusal(self, protocol: Protocol) -> str | None:
        if fault := super().refusal(protocol):
            return fault
        if not protocol.pacing:
            return f"pacing of quic is true: {self.name} always paces"
        control = protocol.congestion_control
        if protocol.emulated_connections is not None and control != "cubic":
            return f"emulated_connections is for congestion_control cubic: {control} has no such number"
        return None

    def window_segment_bytes(self, protocol: Protocol) -> int:
        return SEGMENT_BYTES

    def _options(self, serving: Serving) -> list[str | Path]:
        protocol = serving.protocol
        options: list[str | Path] = ["--endpoints", write_endpoints(serving), "--responses", serving.content]
        options += ["--tls-group", protocol.tls_group, *self.arguments(protocol)]
        if serving.request_log:
            options += ["--request-log", serving.request_log]
        if serving.qlog:
            options += ["--qlog", serving.qlog]
        if serving.think_time:
            options.append("--think-time")
        return options
