"""Access networks: `networks.toml` as values, and what follows from them for each direction."""

import math
from dataclasses import dataclass
from pathlib import Path

from tuning.settings import load_tables

FILE = Path(__file__).parent / "networks.toml"


@dataclass(frozen=True)
class Network:
    """One access network (paper, Table 2). Rates in Mbit/s, times in ms, loss as a round-trip probability."""

    name: str
    up_mbps: float
    down_mbps: float
    min_rtt_ms: float
    loss: float
    queue_ms: float

    @property
    def delay_ms(self) -> float:
        """Propagation delay of each direction."""
        return self.min_rtt_ms / 2

    @property
    def loss_per_direction(self) -> float:
        """Drop probability in each direction, such that a packet and its answer both survive with 1 - loss."""
        return 1 - math.sqrt(1 - self.loss)

    @property
    def up_queue_bytes(self) -> int:
        return self._queue_bytes(self.up_mbps)

    @property
    def down_queue_bytes(self) -> int:
        return self._queue_bytes(self.down_mbps)

    def _queue_bytes(self, rate_mbps: float) -> int:
        return round(rate_mbps * 1e6 / 8 * self.queue_ms / 1e3)


def load(file: Path = FILE) -> dict[str, Network]:
    """Every network by name. Raises EyelevelError."""
    return load_tables(file, Network, _fault)


def _fault(network: Network) -> str | None:
    for key in ("up_mbps", "down_mbps", "min_rtt_ms", "loss", "queue_ms"):
        value = getattr(network, key)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            return f"{key} must be a number, not {value!r}"
    if network.up_mbps <= 0 or network.down_mbps <= 0:
        return "up_mbps and down_mbps must be more than 0"
    if network.min_rtt_ms < 0:
        return "min_rtt_ms must not be negative"
    if not 0 <= network.loss < 1:
        return "loss must be at least 0 and less than 1"
    # A queue that cannot hold one full packet would drop every one that does not meet an idle link.
    if min(network.up_queue_bytes, network.down_queue_bytes) < 1500:
        return "queue_ms makes a queue of less than one packet of 1500 bytes"
    return None
