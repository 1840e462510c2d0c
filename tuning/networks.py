"""Access networks: `networks.toml` as values, and what follows from them for each direction."""

import gzip
import hashlib
import math
from dataclasses import dataclass, field, replace
from pathlib import Path

from tuning.settings import DERIVED, Reader, Table

FILENAME = "networks.toml"

# What a grid of networks may vary, and the unit that the value has in a network's name.
GRID_UNITS = {"up_mbps": "mbps", "down_mbps": "mbps", "min_rtt_ms": "ms", "loss": "loss", "queue_ms": "queue"}

# Which directions lose packets.
BOTH, UP, DOWN = "both", "up", "down"

# What one line of a Mahimahi trace lets through (Winstein et al.). The shells have it in Rust (shells/src).
TRACE_LINE_BYTES = 1504

# What a network is called in another browser than the first of a campaign: `lte@firefox`. No network's own name has it.
IN_BROWSER = "@"

# A full segment of TCP over Ethernet.
SEGMENT_BYTES = 1460
# The shortest quiet time that was studied (docs/quiet-times.md).
LEAST_QUIET_MS = 1000
# The rate to reckon with where a network has no limit.
UNLIMITED_MBPS = 1000.0


@dataclass(frozen=True)
class Network:
    """One access network (paper, Table 2). Rates in Mbit/s, times in ms, loss as a round-trip probability.

    Both directions share the loss, or `loss_on` names the one that has it.

    A direction's rate is constant, or follows a trace in Mahimahi's format, a file; without either, it has no limit.
    Of a trace, the rate is its mean.

    With `retransmit_ms`, the link repeats what it would lose until it arrives, in order, so much later for each try
    that fails (ARQ, RFC 3366). `drop_up_packets` and `drop_up_at_ms` are lost for good, whatever else happens: the
    packets of these numbers, from 1, and the first at or after these times since the emulator began. Both are of IP
    packets as on a wire, at the client's end of the network.

    A page behind it has finished when it has asked for nothing for `quiet_ms`, over whatever protocol; what holds where
    nothing is given, is for browsers to say.
    """

    name: str
    min_rtt_ms: float
    up_mbps: float | None = None
    down_mbps: float | None = None
    loss: float = 0
    queue_ms: float | None = None
    jitter_ms: float = 0
    reorder: bool = False
    loss_on: str = BOTH
    retransmit_ms: float | None = None
    drop_up_packets: tuple[int, ...] | None = None
    drop_down_packets: tuple[int, ...] | None = None
    drop_up_at_ms: tuple[float, ...] | None = None
    drop_down_at_ms: tuple[float, ...] | None = None
    up_trace: str | None = None
    down_trace: str | None = None
    quiet_ms: int | None = None
    up_trace_sha256: str | None = field(default=None, metadata=DERIVED)
    down_trace_sha256: str | None = field(default=None, metadata=DERIVED)

    @property
    def follows_clock(self) -> bool:
        """Whether what it does to a packet depends on when the emulator began, or on the packets before."""
        return self.drops_chosen_packets or self.up_trace is not None or self.down_trace is not None

    @property
    def drops_chosen_packets(self) -> bool:
        """Whether it loses packets that are chosen by number or time."""
        return any((self.drop_up_packets, self.drop_down_packets, self.drop_up_at_ms, self.drop_down_at_ms))

    @property
    def delay_ms(self) -> float:
        """Propagation delay of each direction."""
        return self.min_rtt_ms / 2

    @property
    def up_loss(self) -> float:
        """Probability of loss on the way to the servers; a packet and its answer both survive with 1 - loss.

        On a link that retransmits, it is that of a try.

        The shells reckon so too, for `mm-net --profile` (`one_way_loss` in Rust).
        """
        return self._loss(UP)

    @property
    def down_loss(self) -> float:
        """The same on the way to the client."""
        return self._loss(DOWN)

    def _loss(self, direction: str) -> float:
        if self.loss_on == BOTH:
            return 1 - math.sqrt(1 - self.loss)
        return self.loss if self.loss_on == direction else 0.0

    @property
    def up_queue_bytes(self) -> int | None:
        """The length of the drop-tail queue, or None where nothing queues; as the shells have it in Rust."""
        return self._queue_bytes(self.up_mbps)

    @property
    def down_queue_bytes(self) -> int | None:
        return self._queue_bytes(self.down_mbps)

    def _queue_bytes(self, rate_mbps: float | None) -> int | None:
        return None if rate_mbps is None or self.queue_ms is None else round(rate_mbps * 1e3 / 8 * self.queue_ms)

    def tcp_rate_bps(self, connections: int = 1) -> float:
        """What so many TCP connections reach downwards: the link's rate, or what losses leave of it.

        Mathis et al., "The macroscopic behavior of the TCP congestion avoidance algorithm" (CCR 1997):
        rate <= (MSS / RTT) * 1.22 / sqrt(p) for each connection.
        """
        rate_bps = (self.down_mbps or UNLIMITED_MBPS) * 1e6
        if self.down_loss and self.min_rtt_ms and self.retransmit_ms is None:
            mathis_bps = connections * SEGMENT_BYTES * 8 / (self.min_rtt_ms / 1e3) * 1.22 / self.down_loss**0.5
            rate_bps = min(rate_bps, mathis_bps)
        return rate_bps

    def __str__(self) -> str:
        up, down = ("no limit" if mbps is None else f"{mbps:.3g} Mbit/s" for mbps in (self.up_mbps, self.down_mbps))
        repaired = "" if self.retransmit_ms is None else f" repaired in {self.retransmit_ms:g} ms"
        drops = ", chosen packets dropped" if self.drops_chosen_packets else ""
        return f"{up} up, {down} down, {self.min_rtt_ms:g} ms, loss {self.loss:g}{repaired}{drops}"


def read_trace(path: Path) -> list[bytes]:
    """The lines of a trace in Mahimahi's format, which may be compressed by gzip. Raises OSError, EOFError."""
    content = path.read_bytes()
    return (gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content).split()


def _locate_traces(table: Table, file: Path) -> Table:
    """`table` with the paths of its traces, which are relative to `file`, made absolute."""
    traces = {key: table[key] for key in ("up_trace", "down_trace") if isinstance(table.get(key), str)}
    return {**table, **{key: str((file.parent / name).resolve()) for key, name in traces.items()}}


def _finished(network: Network) -> Network:
    """`network` with what follows from its traces. Raises ValueError with what is wrong with it."""
    _check(network)
    network = _with_traces(network)
    # A queue that cannot hold one full packet would drop every one that does not meet an idle link.
    queues_bytes = [size for size in (network.up_queue_bytes, network.down_queue_bytes) if size is not None]
    if min(queues_bytes, default=1500) < 1500:
        raise ValueError("queue_ms makes a queue of less than one packet of 1500 bytes")
    return network


def _with_traces(network: Network) -> Network:
    for direction in ("up", "down"):
        if (path := getattr(network, f"{direction}_trace")) is None:
            continue
        try:
            lines = read_trace(Path(path))
            period_ms = int(lines[-1])
            mbps = len(lines) * TRACE_LINE_BYTES * 8 / period_ms / 1e3
        except (OSError, EOFError) as error:
            raise ValueError(f"{direction}_trace: {path}: {error}") from None
        except (ValueError, IndexError, ZeroDivisionError):
            raise ValueError(f"{direction}_trace: {path} is no Mahimahi trace") from None
        digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
        derived = {f"{direction}_trace_sha256": digest, f"{direction}_mbps": mbps}
        network = replace(network, **derived)  # type: ignore[arg-type]
    return network


def _check(network: Network) -> None:
    if IN_BROWSER in network.name:
        raise ValueError(f"a name must not have {IN_BROWSER!r}, which stands before a browser's")
    for direction in ("up", "down"):
        mbps, trace = (getattr(network, f"{direction}_{key}") for key in ("mbps", "trace"))
        if mbps is not None and trace is not None:
            raise ValueError(f"give {direction}_mbps or {direction}_trace, not both")
        if mbps is not None and mbps <= 0:
            raise ValueError(f"{direction}_mbps must be more than 0")
        if (mbps is None and trace is None) != (network.queue_ms is None):
            raise ValueError(
                f"queue_ms and a rate belong together: give both {direction}_mbps (or _trace) and queue_ms, or none"
            )
    if network.min_rtt_ms < 0:
        raise ValueError("min_rtt_ms must not be negative")
    if not 0 <= network.jitter_ms <= network.min_rtt_ms / 2:
        raise ValueError("jitter_ms must be at least 0 and at most half of min_rtt_ms")
    if not 0 <= network.loss < 1:
        raise ValueError("loss must be at least 0 and less than 1")
    if network.loss_on not in (BOTH, UP, DOWN):
        raise ValueError(f"loss_on must be {BOTH}, {UP} or {DOWN}")
    if network.retransmit_ms is not None and not (network.retransmit_ms > 0 and network.loss > 0):
        raise ValueError("retransmit_ms must be more than 0, and needs a loss of more than 0, which it repairs")
    if network.quiet_ms is not None and network.quiet_ms < LEAST_QUIET_MS:
        raise ValueError(f"quiet_ms must be at least {LEAST_QUIET_MS}")
    _check_drops(network)


def _check_drops(network: Network) -> None:
    for direction in (UP, DOWN):
        packets, at_ms = (getattr(network, f"drop_{direction}_{key}") or () for key in ("packets", "at_ms"))
        if min(packets, default=1) < 1 or len(set(packets)) < len(packets):
            raise ValueError(f"drop_{direction}_packets must be whole numbers of at least 1, each once")
        if min(at_ms, default=0) < 0 or len(set(at_ms)) < len(at_ms):
            raise ValueError(f"drop_{direction}_at_ms must be times of at least 0, each once")


# Every network by name: those of a file, or all that there are.
load = Reader(FILENAME, Network, _finished, GRID_UNITS, _locate_traces).load
