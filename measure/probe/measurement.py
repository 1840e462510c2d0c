"""The measurements of a network, as a validation reads them."""

import itertools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from measure.probe.conditions import LetThrough, SeenConditions
from measure.probe.flows import Flow, Times
from tuning.impairments.on_off import OnOff

# A packet that is late by more than the first share of what a repeat costs was repeated, or waited. It did not wait if
# the one before it was late by less than the second.
LATE_SHARE, FREE_SHARE = 0.5, 0.25


@dataclass(frozen=True)
class Direction:
    """The measurement of one direction: rate in Mbit/s, loss of how many packets, queue in bytes.

    `mbps` of a constant rate is that of the usual gap between two packets, None where the rate is given out in whole
    packets, and `mean_mbps` is that of all together; `trace` is the rate that a trace lets through in the time in which
    the rate was measured. `lost_numbers` are the first of the packets that were lost, from 0; `lost_behind_lost` is how
    many of them followed another. Losses while the direction was off are in `outages` alone. `least_ms` is the shortest
    way of a packet, without serialisation. `in_order`: whether no packet overtook another.
    """

    sent: int
    lost: int
    mbps: float | None = None
    queue_bytes: float | None = None
    trace: LetThrough | None = None
    mean_mbps: float | None = None
    lost_numbers: tuple[int, ...] = ()
    repairs: "Repairs | None" = None
    lost_behind_lost: int = 0
    least_ms: float | None = None
    in_order: bool = True
    outages: "Outages | None" = None
    managed: "Managed | None" = None
    conditions: SeenConditions | None = None


@dataclass(frozen=True)
class Repairs:
    """Observations of a link that retransmits its losses.

    Among the `free` packets, which did not wait for another, `late` came later, by `repeat_ms` in the median (None if
    none did).
    """

    free: int
    late: int
    repeat_ms: float | None


@dataclass(frozen=True)
class Outages:
    """When a direction was off: how often, for how long on average, and for how long it was on between.

    `least_s`: shorter ones cannot be told from losses.
    """

    count: int
    off_s: float
    on_s: float
    least_s: float


@dataclass(frozen=True)
class Managed:
    """The effect of a queue on `flow`, which was a little more than its link carries: the shares of all packets that
    were dropped and marked, the wait in the queue in the median of those in the second half, and that of another flow's
    packets, of which there were few."""

    flow: Flow
    dropped: float
    marked: float
    wait_ms: float
    sparse_wait_ms: float


@dataclass(frozen=True)
class NetworkMeasurement:
    """The measurement of a network. Times in ms; round trips are of the empty network, without serialisation.

    `in_opportunities`: whether a constant rate is given out in whole packets (`replay.shells.contract`).
    """

    rtt_min_ms: float
    rtt_median_ms: float
    rtt_p99_ms: float
    echoes: int
    resolution_ms: float
    up: Direction
    down: Direction
    rtt_sd_ms: float = 0.0
    in_opportunities: bool = False


def outages(arrived: Times, runs: Sequence[range], flow: Flow, least_packets: int, times: OnOff) -> Outages:
    """When a direction was off, by the times at which the packets before and behind each of `runs` were sent.

    An outage that began before the first packet, or did not end before the last, does not count.
    """
    interval_s = flow.size_bytes * 8 / flow.mbps / 1e6
    inner = [run for run in runs if run.start - 1 in arrived and run.stop in arrived]
    edges_s = [(arrived[run.start - 1][0] / 1e9, arrived[run.stop][0] / 1e9) for run in inner]
    off_s = [end_s - begin_s - interval_s for begin_s, end_s in edges_s]
    on_s = [begin_s - end_s + interval_s for (_, end_s), (begin_s, _) in itertools.pairwise(edges_s)]
    # Times that are always the same are seen by their median, which a busy machine does not change.
    average = statistics.median if times.periodic else statistics.fmean
    mean_off_s, mean_on_s = (average(spans) if spans else 0.0 for spans in (off_s, on_s))
    return Outages(len(on_s), mean_off_s, mean_on_s, least_packets * interval_s)


def repairs(arrived: Times, cost_ms: float, *, waits: bool) -> Repairs:
    """How a link repeated what it lost of the packets that arrived: number → (time sent, time it arrived), in ns.

    They are in the order in which they came; a try in vain costs `cost_ms`. `waits`: whether packets wait for the one
    before them. A packet that waits for another does not show whether it was lost itself. Those that wait for none are
    a sample of all: whether one does has nothing to do with whether it is lost.
    """
    late_ms = {number: (at - sent) / 1e6 for number, (sent, at) in arrived.items()}
    least_ms = min(late_ms.values(), default=0)
    late_ms = {number: ms - least_ms for number, ms in late_ms.items()}
    # A packet after one that never came may wait for it, too.
    free_ms = [
        ms for number, ms in late_ms.items() if not waits or late_ms.get(number - 1, cost_ms) < FREE_SHARE * cost_ms
    ]
    repeated_ms = [ms for ms in free_ms if ms > LATE_SHARE * cost_ms]
    median_ms = statistics.median(repeated_ms) if repeated_ms else None
    return Repairs(len(free_ms), len(repeated_ms), median_ms)
