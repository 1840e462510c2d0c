"""Server choices: aspects of a protocol's server that no setting determines."""

from dataset.observations import ANSWER_TO_LOSS, ORDER
from servers.registry import server_of
from tuning.protocols import Protocol


def choices_of_server(protocol: Protocol) -> dict[str, str]:
    """Server choice → its value in words, for the server of `protocol`. Raises EyelevelError when the server is
    unknown."""
    server, control = server_of(protocol), protocol.congestion_control
    if control == "cubic":
        connections = server.cubic_connections(protocol)
        control += f" as {connections} connection{'' if connections == 1 else 's'}"
    unknown = "as written to the kernel's send buffer" if protocol.in_kernel else f"that of {protocol.server}"
    order = server.order_of_service(protocol) or unknown
    return {ANSWER_TO_LOSS: control, ORDER: order}
