"""Hops: what stands in the middle of a path, and the half of the path between it and the servers."""

from dataclasses import dataclass

# The kind that hands every packet on: the same two halves, for comparison. `replay.hops` has all.
NONE = "none"
# Linux's.
USUAL_CONGESTION_CONTROL, USUAL_WINDOW_PACKETS = "cubic", 10


@dataclass(frozen=True)
class Hop:
    """A hop of this `kind`, and what lies between it and the servers: the far half of a network, whose own settings are
    those of the near half, between the browser and the hop.

    `min_rtt_ms`, rates, `queue_ms`, `loss` and `jitter_ms` are as a network's (`tuning.networks`). With
    `congestion_control` and `initial_window_packets` a hop that splits connections sends in both directions, one that
    terminates them, and its servers, to each other, and one that tunnels to the browser; the rest is the usual.
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
