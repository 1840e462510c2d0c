"""Access networks: the values of `networks.toml`, and what they imply for each direction."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from base.registry import registered
from tuning import impairments
from tuning.devices import require_network_name
from tuning.impairments.contract import DOWN, UP, Impairment, Settings
from tuning.impairments.loss import Loss
from tuning.settings import Reader, Table

FILENAME = "networks.toml"

# Every impairment, in the order in which descriptions of a network and command lines mention them.
IMPAIRMENTS: tuple[Impairment, ...] = tuple(
    sorted(registered(impairments, "IMPAIRMENT").values(), key=lambda one: (one.place, one.name))
)
# The keys that a grid of networks may vary (those whose value is not a list), with the unit that follows the value in a
# network's name; keys of tables such as `up_queue` included.
UNITS: Mapping[str, str] = {"quiet_ms": "quiet"} | {key: unit for one in IMPAIRMENTS for key, unit in one.units.items()}

# A full segment of TCP over Ethernet.
SEGMENT_BYTES = 1460
# The shortest quiet time that was studied (docs/contributors/quiet-times.md).
LEAST_QUIET_MS = 1000
# The rate that is assumed if a network has no limit.
UNLIMITED_MBPS = 1000.0

if TYPE_CHECKING:
    from tuning.impairments.delay import Delay
    from tuning.impairments.hop import Hopped
    from tuning.impairments.on_off import OnOffs
    from tuning.impairments.over_time import OverTime
    from tuning.impairments.queue import Queues

    class _Impaired(Hopped, OnOffs, Queues, OverTime, Delay):
        """The keys that are also read outside their impairments."""
else:
    _OF_ALL = [one.keys for one in reversed(IMPAIRMENTS)]
    _MOST = [keys for keys in _OF_ALL if not any(keys in more.__mro__[1:] for more in _OF_ALL)]
    _Impaired = type("_Impaired", tuple(_MOST), {})


@dataclass(frozen=True)
class Network(_Impaired):
    """One access network (paper, Table 2): the keys of all impairments. Rates are in Mbit/s, times in ms.

    A page on it has finished when no response to it has ended for `quiet_ms`, over any protocol. If the key is missing,
    the browser's default applies.
    """

    quiet_ms: int | None = None

    @property
    def follows_clock(self) -> bool:
        """Whether its effect on a packet depends on the time since the emulator's start, or on earlier packets."""
        on_off = any((self.on_off, self.up_on_off, self.down_on_off))
        files = (self.up_trace, self.down_trace, self.up_conditions, self.down_conditions)
        return self.drops_chosen_packets or on_off or any(file is not None for file in files)

    def constant_rate_of(self, direction: str) -> float | None:
        """The rate of one direction in Mbit/s, if it is constant; otherwise None."""
        varies = self.trace_of(direction) or self.on_off_of(direction)
        return None if varies else self.rate_of(direction)

    @property
    def alone(self) -> "Network":
        """This network without background flows."""
        return replace(self, cross_traffic=None, up_cross_traffic=None, cross_traffic_on_off=None)

    @property
    def lossless(self) -> "Network":
        """This network if its links lost no packets by chance."""
        usual: dict[str, Any] = {one.name: one.default for one in fields(Loss) if one.default is not MISSING}
        return replace(self, **usual)

    @property
    def halves(self) -> "tuple[Network, ...]":
        """The near and the far half as separate networks; without a hop, the network itself."""
        if not (hop := self.hop):
            return (self,)
        near = replace(self, name=f"{self.name}: near", hop=None)
        keys = {one.name for one in fields(hop)} & {one.name for one in fields(self)}
        return near, Network(name=f"{self.name}: far", **{key: getattr(hop, key) for key in keys})

    @property
    def path_rtt_ms(self) -> float:
        """The smallest round-trip time between the browser and the servers."""
        return sum(half.min_rtt_ms for half in self.halves)

    def tcp_rate_bps(self, connections: int = 1) -> float:
        """The rate that this many TCP connections reach downwards: the link's, or less if losses limit it.

        Mathis et al., "The macroscopic behavior of the TCP congestion avoidance algorithm" (CCR 1997): rate <= (MSS /
        RTT) * 1.22 / sqrt(p) for each connection.
        """
        halves = self.halves
        rate_bps = min(half.down_mbps or UNLIMITED_MBPS for half in halves) * 1e6
        loss = 1 - math.prod(1 - half.lasting_loss_of(DOWN) for half in halves)
        if loss and self.path_rtt_ms:
            mathis_bps = connections * SEGMENT_BYTES * 8 / (self.path_rtt_ms / 1e3) * 1.22 / loss**0.5
            rate_bps = min(rate_bps, mathis_bps)
        return rate_bps

    def __str__(self) -> str:
        up, down = ("no limit" if mbps is None else f"{mbps:.3g} Mbit/s" for mbps in (self.up_mbps, self.down_mbps))
        repaired = "" if self.retransmit_ms is None else f" repaired in {self.retransmit_ms:g} ms"
        changes = ", delay or loss over time" if self.up_conditions or self.down_conditions else ""
        drops = ", chosen packets dropped" if self.drops_chosen_packets else ""
        beside = "".join(
            f", beside {' and '.join(kinds)}{' upwards' if way == UP else ''}"
            for way, kinds in ((DOWN, self.cross_traffic), (UP, self.up_cross_traffic))
            if kinds
        )
        near = f"{up} up, {down} down, {self.min_rtt_ms:g} ms, loss {self.loss:g}{changes}{repaired}{drops}{beside}"
        return f"{near}; hop ({self.hop.kind}); {self.halves[1]}" if self.hop else near


def words(settings: Settings, *, short: bool = False) -> Iterator[str]:
    """The impairments of a network, each in a few words, from its settings in `campaign.json`; with `short` as in a
    figure."""
    for one in IMPAIRMENTS:
        yield from (one.label or one.words if short else one.words)(settings)


def _locate_files(table: Table, file: Path) -> Table:
    """`table` with its paths, which are relative to `file`, made absolute."""

    def located(path: Any) -> Any:
        return str((file.parent / path).resolve()) if isinstance(path, str) else path

    files = {key: table[key] for one in IMPAIRMENTS for key in one.files if key in table}
    return {
        **table,
        **{key: [*map(located, path)] if isinstance(path, list) else located(path) for key, path in files.items()},
    }


def _finished(network: Network) -> Network:
    """`network` with the values derived from its keys. Raises ValueError with the fault."""
    require_network_name(network.name)
    if network.quiet_ms is not None and network.quiet_ms < LEAST_QUIET_MS:
        raise ValueError(f"quiet_ms must be at least {LEAST_QUIET_MS}")
    for one in IMPAIRMENTS:
        one.check(network)
    if network.hop:
        try:
            _finished(network.halves[1])
        except ValueError as error:
            raise ValueError(f"hop: {error}") from None
    for one in IMPAIRMENTS:
        network = one.finish(network)
    return network


# Load every network by name: those of a file, or all.
load = Reader(FILENAME, Network, _finished, UNITS, _locate_files).load
