"""Whether packets of one direction have the right delay, and overtake each other only if they may."""

from collections.abc import Iterator

from dataset.checks import Check
from measure.validate.network.contract import PACKET_BITS, Judge, OneWay
from measure.validate.network.round_trip import tolerance_ms
from tuning.conditions import DELAY

# The tolerance of delays over time.
CONDITIONS_TOLERANCE_MS = 1.0


def _delay(way: OneWay) -> Iterator[Check]:
    """The delay of this direction, if the two directions differ."""
    if way.seen.least_ms is None:
        return
    if way.trace:
        yield way.unchecked("delay", "a packet waits for the trace's next line, too")
    else:
        delay_ms = way.network.delay_of(way.direction)
        yield way.within("delay", delay_ms, way.seen.least_ms, tolerance_ms(way.network), "ms")


def _order(way: OneWay) -> Iterator[Check]:
    """Whether packets overtake each other."""
    network = way.network
    changes = bool((network.jitter_ms and network.reorder) or (_loses_tries(way) and network.retransmit_reorder))
    yield way.same("order", "changed" if changes else "kept", "kept" if way.seen.in_order else "changed")


def _loses_tries(way: OneWay) -> bool:
    return way.repeats and way.loss > 0


def _over_time(way: OneWay) -> Iterator[Check]:
    """The delay over time, if it changes."""
    conditions, seen = way.network.conditions_of(way.direction), way.seen.conditions
    if not conditions or not conditions.has(DELAY) or not seen:
        return
    # With a trace, a packet also waits for its next line.
    line_ms = PACKET_BITS / way.mbps / 1e3 if way.trace and way.mbps else 0.0
    off_ms = CONDITIONS_TOLERANCE_MS + way.network.jitter_ms + line_ms
    yield way.between("delay over time, median deviation", 0, seen.off_ms, off_ms, "ms")
    yield way.within("delay over time, mean", seen.expected_delay_ms, seen.delay_ms, off_ms, "ms")


DELAYS = Judge(_delay, lambda way: way.network.up_delay_ms is not None)
ORDER = Judge(_order, lambda way: bool(way.network.jitter_ms) or _loses_tries(way))
OVER_TIME = Judge(_over_time)
