"""Hops: a middlebox on the path, and the half of the path between it and the servers."""

from dataclasses import dataclass

# The kind that forwards every packet: the same two halves, for comparison. `replay.hops` has all kinds.
NONE = "none"
# The defaults of Linux.
USUAL_CONGESTION_CONTROL, USUAL_WINDOW_PACKETS = "cubic", 10


@dataclass(frozen=True)
class Hop:
    """A hop of this `kind`, and the far half of the network, between the hop and the servers.

    The network's own keys describe the near half, between the browser and the hop. `min_rtt_ms`, rates, `queue_ms`,
    `loss` and `jitter_ms` are as in a network (`tuning.networks`). A hop that splits
    connections sends with `congestion_control` and `initial_window_packets` on both halves. A hop that terminates
    connections uses them on the far half, as do its servers; a hop that tunnels uses them towards the browser.
    Everything else uses defaults.
    """

    kind: str
    min_rtt_ms: float
    up_mbps: float | None = None
    down_mbps: float | None = None
    queue_ms: float | None = None
    loss: float = 0
    jitter_ms: float = 0
    congestion_control: str = USUAL_CONGESTION_CONTROL
    initial_window_packets: int = USUAL_WINDOW_PACKETS
