"""Serves a site over QUIC and HTTP/3 with our `quinn_server` (Rust, in `servers/quinn/`): one process for all
addresses.

It uses another QUIC implementation than quic_server. `servers/quinn/README.md` describes what the two have in common,
and how they differ.
"""

from typing import ClassVar

from servers.own_quic import SEGMENT_BYTES, OwnQuicServer
from tuning.protocols import Protocol

# quinn_server's order of service, by the name of quic_server's equivalent scheduler: responses take turns of one
# packet.
ORDER_OF_SERVICE = "fair"
# quinn keeps its window at two of its longest packets or more.
LEAST_WINDOW_PACKETS = 2


class QuinnServer(OwnQuicServer):
    """Our server based on quinn and h3. Its command line sets everything: it ignores browsers' connection options."""

    name = "quinn"
    congestion_controls = ("cubic", "reno")
    programs: ClassVar = {"quinn_server": "--version"}
    choices: ClassVar = {"emulated_connections": (1,)}
    # After a loss, quinn paces by the smoothed round-trip time, which still includes the wait in the queue before the
    # loss. So it sends more slowly than the window permits.
    fills_window_after_loss = False

    def arguments(self, protocol: Protocol) -> list[str]:
        window_bytes = protocol.initial_window_packets * SEGMENT_BYTES
        arguments = ["--congestion-control", protocol.congestion_control, "--initial-window", str(window_bytes)]
        return [*arguments, "--early-data"] if protocol.early_data else arguments

    def refusal(self, protocol: Protocol) -> str | None:
        if fault := super().refusal(protocol):
            return fault
        if protocol.initial_window_packets < LEAST_WINDOW_PACKETS:
            return f"the initial window of quinn is at least {LEAST_WINDOW_PACKETS} packets"
        if protocol.connection_options:
            return f"connection_options have {protocol.connection_options[0]}, which quinn ignores"
        return None

    def order_of_service(self, protocol: Protocol) -> str | None:
        return ORDER_OF_SERVICE


SERVER = QuinnServer()
