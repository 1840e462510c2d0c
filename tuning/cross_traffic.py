"""Cross traffic: background flows of other users that share a network with the page, as `networks.toml` names them.

A flow is described by a protocol, like servers of pages: TCP flows are stock Linux with the congestion control that
they are named after, QUIC flows are stock quic_server.
"""

from dataclasses import dataclass, replace

from tuning import protocols
from tuning.impairments.contract import DOWN, UP
from tuning.impairments.cross_traffic import QUIC_FLOW
from tuning.impairments.on_off import OnOff
from tuning.networks import Network
from tuning.protocols import Protocol

# A bulk flow counts as steady after this many of its longest round trips, but LEAST_STEADY_S after its start at the
# earliest, and MOST_STEADY_S at the latest.
STEADY_ROUND_TRIPS, LEAST_STEADY_S, MOST_STEADY_S = 40, 5.0, 20.0
# The longest wait in a queue that is assumed if nothing limits it.
UNLIMITED_WAIT_MS = 500.0


@dataclass(frozen=True)
class Flow:
    """A background flow: its name, how its sender sends, its direction, and when it is on and off (if it is not always
    on)."""

    name: str
    protocol: Protocol
    direction: str = DOWN
    on_off: OnOff | None = None


def flows_of(network: Network) -> tuple[Flow, ...]:
    """The background flows of `network`, those to the client first."""
    kinds = [(kind, DOWN) for kind in network.cross_traffic or ()] + [
        (kind, UP) for kind in network.up_cross_traffic or ()
    ]
    return tuple(Flow(kind, protocol_of(kind), direction, network.cross_traffic_on_off) for kind, direction in kinds)


def protocol_of(kind: str) -> Protocol:
    """How a flow of this kind sends (`tuning.impairments.cross_traffic.CROSS_TRAFFIC`)."""
    base = protocols.load()["quic" if kind.startswith(QUIC_FLOW) else "tcp"]
    return replace(base, name=kind, congestion_control=kind.removeprefix(QUIC_FLOW))


def steady_s(network: Network) -> float:
    """How long flows on `network` run until they are steady: past slow start, and past some periods of their congestion
    control."""
    round_trip_s = (network.min_rtt_ms + network.queue_wait_ms(UNLIMITED_WAIT_MS)) / 1e3
    return min(max(STEADY_ROUND_TRIPS * round_trip_s, LEAST_STEADY_S), MOST_STEADY_S)
