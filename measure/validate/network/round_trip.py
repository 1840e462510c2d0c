"""Whether round trips take the right time, and names are resolved at once."""

import math
from collections.abc import Iterator

from dataset.checks import Check
from measure.probe.emulated import UNLIMITED_WAIT_MS
from measure.validate.network.contract import PACKET_BITS, RTT_TOLERANCE, RTT_TOLERANCE_MS, Judge, Whole
from tuning.conditions import DELAY
from tuning.networks import Network

# Mahimahi's shells count whole milliseconds, in each direction.
WHOLE_MS_TOLERANCE = 2.0
RESOLUTION_TOLERANCE_MS = 3.0
# The tolerances of the standard deviation of echoes: a sample of 100 echoes exceeds them once in 10,000.
SCATTER_TOLERANCE, SCATTER_TOLERANCE_MS = 0.25, 0.3


def tolerance_ms(network: Network) -> float:
    """The permitted error of a measured round trip of `network`, in ms."""
    return max(RTT_TOLERANCE_MS, RTT_TOLERANCE * network.min_rtt_ms) + network.jitter_ms


def _round_trip(case: Whole) -> Iterator[Check]:
    """The round-trip time of packets that wait only for the processor, and for the link's repeats."""
    network, seen = case.network, case.seen
    yield case.within("minimum RTT", network.min_rtt_ms, seen.rtt_min_ms, _early_ms(network), "ms")
    if network.retransmit_ms is None:
        yield case.within("median RTT", network.min_rtt_ms, seen.rtt_median_ms, 3 * tolerance_ms(network), "ms")
    else:
        yield case.unchecked("median RTT", "echoes wait for what the link repeats", network.min_rtt_ms, "ms")


def _early_ms(network: Network) -> float:
    """The permitted error of the shortest round trip, in ms. It has the jitter twice: of many echoes, some have the
    least delay in both directions."""
    return tolerance_ms(network) + network.jitter_ms


def _round_trip_over_time(case: Whole) -> Iterator[Check]:
    """The minimum round-trip time if delays change over time, or packets wait for the lines of a trace."""
    network = case.network
    early_ms = _early_ms(network)
    most_ms = network.min_rtt_ms + network.queue_wait_ms(UNLIMITED_WAIT_MS) * case.waits_for_lines
    if _changes(case):
        most_ms += sum(conditions.largest(DELAY) for conditions in case.changing) + early_ms
    yield case.between("minimum RTT", network.min_rtt_ms - early_ms, case.seen.rtt_min_ms, most_ms, "ms")


def _changes(case: Whole) -> bool:
    """Whether delays change over time, and the link's repeats do not hide the changes."""
    return bool(case.changing) and case.network.retransmit_ms is None


def _round_trip_in_opportunities(case: Whole) -> Iterator[Check]:
    """The round-trip time if, in each direction, a packet waits for the next opportunity to send a whole packet."""
    network, seen = case.network, case.seen
    wait_ms = sum(PACKET_BITS / mbps / 1e3 for mbps in (network.up_mbps, network.down_mbps) if mbps)
    off_ms = max(tolerance_ms(network), WHOLE_MS_TOLERANCE)
    for name, value_ms, further_ms in (
        ("minimum RTT", seen.rtt_min_ms, off_ms),
        ("median RTT", seen.rtt_median_ms, 3 * off_ms),
    ):
        most_ms = network.min_rtt_ms + wait_ms + further_ms
        yield case.between(name, network.min_rtt_ms - off_ms, value_ms, most_ms, "ms")


def _names(case: Whole) -> Iterator[Check]:
    """The time to resolve a name, which must not depend on the network."""
    yield case.within("name resolution", 0, case.seen.resolution_ms, RESOLUTION_TOLERANCE_MS, "ms")


def _jitter(case: Whole) -> Iterator[Check]:
    """The scatter of echoes: in each direction, a packet is early or late by up to the jitter, uniformly."""
    sd_ms = math.sqrt(2 / 3) * case.network.jitter_ms
    off_ms = SCATTER_TOLERANCE * sd_ms + SCATTER_TOLERANCE_MS
    yield case.within("standard deviation of RTT", sd_ms, case.seen.rtt_sd_ms, off_ms, "ms")


def _is_steady(case: Whole) -> bool:
    return not (_changes(case) or case.waits_for_lines)


JUDGES = (
    Judge(_round_trip, lambda case: _is_steady(case) and not case.seen.in_opportunities),
    Judge(_round_trip_over_time, lambda case: not _is_steady(case)),
    Judge(_round_trip_in_opportunities, lambda case: _is_steady(case) and case.seen.in_opportunities),
    Judge(_names),
    Judge(_jitter, lambda case: case.network.jitter_ms > 0),
)
