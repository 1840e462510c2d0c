"""Whether one direction of a link has the right rate."""

from collections.abc import Iterator

from dataset.checks import Check
from measure.validate.network.contract import LOSS_DEVIATIONS, Judge, OneWay

RATE_TOLERANCE = 0.02
# The tolerance of the mean rate, which is too low if a busy machine held up the sender for longer than the queue
# lasted.
MEAN_RATE_TOLERANCE = 0.05
TRACE_TOLERANCE = 0.01


def _rate(way: OneWay) -> Iterator[Check]:
    seen = way.seen
    configured_mbps: float | None = (seen.trace.mbps if seen.trace else None) if way.trace else way.mbps
    if configured_mbps is not None and seen.mbps is not None:
        tolerance = configured_mbps * (TRACE_TOLERANCE if way.trace else RATE_TOLERANCE)
        tolerance += LOSS_DEVIATIONS * seen.trace.sd_mbps if seen.trace else 0
        yield way.within("rate", configured_mbps, seen.mbps, tolerance, "Mbit/s")
    elif way.trace and way.in_opportunities:
        yield way.unchecked("rate", "when Mahimahi began the trace is not known")
    if configured_mbps is None or seen.mean_mbps is None:
        return
    if way.is_off_at_times:
        yield way.unchecked("mean rate", "the direction is off at times", configured_mbps, "Mbit/s")
    else:
        tolerance = configured_mbps * MEAN_RATE_TOLERANCE
        yield way.within("mean rate", configured_mbps, seen.mean_mbps, tolerance, "Mbit/s")


def _rate_of_repeats(way: OneWay) -> Iterator[Check]:
    if way.mbps is not None:
        yield way.unchecked("rate", REPEATS_TOGETHER, way.mbps, "Mbit/s")


# Why neither the rate nor the queue of a link that retransmits can be measured.
REPEATS_TOGETHER = "packets wait for what the link repeats, and then go together"
RATES = (Judge(_rate, lambda way: not way.repeats), Judge(_rate_of_repeats, lambda way: way.repeats))
