"""Hops: what stands in the middle of a path, and the half of the path between it and the servers."""

from dataclasses import dataclass

# What a hop does. NONE hands every packet on: the same two halves, for comparison. SPLIT ends TCP connections on both
# sides and does not touch what they carry; QUIC passes. TERMINATE ends HTTP, over TCP or QUIC, and asks the servers by
# HTTP/2 over connections of its own, as an edge of a content delivery network does for what it has not. MASQUE is a
# proxy that a browser knows: it sends the packets of its QUIC connections as datagrams of one to the proxy (RFC 9298).
NONE, SPLIT, TERMINATE, MASQUE = "none", "split", "terminate", "masque"
KINDS = (NONE, SPLIT, TERMINATE, MASQUE)

CONGESTION_CONTROLS = ("cubic", "bbr", "reno")
# The proxy's QUIC has no others, and begins with no fewer packets, nor with more.
TUNNEL_CONGESTION_CONTROLS, LEAST_TUNNEL_PACKETS, MOST_TUNNEL_PACKETS = ("cubic", "reno"), 2, 10_000
# Linux's.
USUAL_WINDOW_PACKETS = 10


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
    congestion_control: str = "cubic"
    initial_window_packets: int = USUAL_WINDOW_PACKETS

    @property
    def splits(self) -> bool:
        """Whether TCP connections end at it, and what they carry does not."""
        return self.kind == SPLIT

    @property
    def terminates(self) -> bool:
        """Whether HTTP ends at it."""
        return self.kind == TERMINATE

    @property
    def tunnels(self) -> bool:
        """Whether QUIC connections pass through one of the browser's to it."""
        return self.kind == MASQUE

    def check(self) -> None:
        """Raises ValueError with what is wrong with what is its own; its half is checked as a network."""
        if self.kind not in KINDS:
            raise ValueError(f"hop.kind must be one of {', '.join(KINDS)}")
        if self.congestion_control not in CONGESTION_CONTROLS:
            raise ValueError(f"hop.congestion_control must be {', '.join(CONGESTION_CONTROLS)}")
        if self.tunnels and self.congestion_control not in TUNNEL_CONGESTION_CONTROLS:
            raise ValueError(f"hop.congestion_control of {MASQUE} must be {', '.join(TUNNEL_CONGESTION_CONTROLS)}")
        least = LEAST_TUNNEL_PACKETS if self.tunnels else 1
        if self.initial_window_packets < least:
            raise ValueError(f"hop.initial_window_packets must be at least {least}")
        if self.tunnels and self.initial_window_packets > MOST_TUNNEL_PACKETS:
            raise ValueError(f"hop.initial_window_packets of {MASQUE} must be at most {MOST_TUNNEL_PACKETS}")
        usual = (self.congestion_control, self.initial_window_packets) == ("cubic", USUAL_WINDOW_PACKETS)
        if self.kind == NONE and not usual:
            raise ValueError("hop.congestion_control and hop.initial_window_packets are of a hop that sends by itself")
