"""The measurements of a network, in the form that validation reads."""

import itertools
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from measure.probe.conditions import LetThrough, SeenConditions
from measure.probe.flows import Flow, Times
from tuning.impairments.on_off import OnOff

# A packet was repeated, or waited for another, if it is late by more than LATE_SHARE of a repeat's cost. It did not
# wait if the packet before it was late by less than FREE_SHARE of that cost.
LATE_SHARE, FREE_SHARE = 0.5, 0.25


@dataclass(frozen=True)
class Direction:
    """The measurement of one direction.

    `lost` of `sent` packets were lost; `lost_numbers` are the numbers of the first ones that were lost (the first
    packet that was sent has the number 0). `lost_behind_lost` is how many followed another lost packet. Losses while
    the direction was off are only in `outages`. `mbps` is the constant rate according to the median gap between packets
    (None if the link sends only at opportunities), and `mean_mbps` is the rate of all packets together (Mbit/s).
    `queue_bytes`: the number of bytes that waited in the queue. `trace` is the rate that a trace should let through in
    the time in which the rate was measured. `least_ms` is the shortest delay of a packet, without serialisation.
    `in_order`: whether no packet overtook another.
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
    """The observed repeats of a link that retransmits its losses.

    `free` packets waited for no other packet. `late` of these had been repeated, so they came later, by a median of
    `repeat_ms` (None if there are none).
    """

    free: int
    late: int
    repeat_ms: float | None


@dataclass(frozen=True)
class Outages:
    """When a direction was off: how often, for how long on average, and how long it was on in between.

    `least_s`: shorter outages cannot be distinguished from losses.
    """

    count: int
    off_s: float
    on_s: float
    least_s: float


@dataclass(frozen=True)
class Managed:
    """The effect of a queue on `flow`, which slightly exceeded the link's rate: the shares of packets that were dropped
    and marked, the median wait in the queue (of the packets in the second half), and the median wait of a sparse flow's
    packets."""

    flow: Flow
    dropped: float
    marked: float
    wait_ms: float
    sparse_wait_ms: float


@dataclass(frozen=True)
class NetworkMeasurement:
    """The measurement of a network. Times are in ms; round trips are those through the idle network, without
    serialisation.

    `in_opportunities`: whether links of constant rate send only at opportunities (`replay.shells.contract`).
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
    """When a direction was off. Each of `runs` is a sequence of lost packets; the sending times of the packets before
    and after it show the outage.

    An outage that began before the first packet, or lasted until the last, does not count.
    """
    interval_s = flow.size_bytes * 8 / flow.mbps / 1e6
    inner = [run for run in runs if run.start - 1 in arrived and run.stop in arrived]
    edges_s = [(arrived[run.start - 1][0] / 1e9, arrived[run.stop][0] / 1e9) for run in inner]
    off_s = [end_s - begin_s - interval_s for begin_s, end_s in edges_s]
    on_s = [begin_s - end_s + interval_s for (_, end_s), (begin_s, _) in itertools.pairwise(edges_s)]
    # Periodic times are averaged by the median, which a busy machine does not change.
    average = statistics.median if times.periodic else statistics.fmean
    mean_off_s, mean_on_s = (average(spans) if spans else 0.0 for spans in (off_s, on_s))
    return Outages(len(on_s), mean_off_s, mean_on_s, least_packets * interval_s)


def repairs(arrived: Times, cost_ms: float, *, waits: bool) -> Repairs:
    """How a link repeated the packets that it lost, as the packets in `arrived` show: number → (time sent, time of
    arrival), in ns.

    Packets are in order of arrival; each failed try costs `cost_ms`. `waits`: whether packets wait for the one before
    them. A packet that waits for another does not show whether it was lost itself. Packets that do not wait are a fair
    sample, since waiting does not depend on being lost.
    """
    late_ms = {number: (at - sent) / 1e6 for number, (sent, at) in arrived.items()}
    least_ms = min(late_ms.values(), default=0)
    late_ms = {number: ms - least_ms for number, ms in late_ms.items()}
    # A packet after one that never came may have waited for it, too.
    free_ms = [
        ms for number, ms in late_ms.items() if not waits or late_ms.get(number - 1, cost_ms) < FREE_SHARE * cost_ms
    ]
    repeated_ms = [ms for ms in free_ms if ms > LATE_SHARE * cost_ms]
    median_ms = statistics.median(repeated_ms) if repeated_ms else None
    return Repairs(len(free_ms), len(repeated_ms), median_ms)
