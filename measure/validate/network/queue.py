"""Whether the queue of one direction holds, drops and marks the right packets."""

import math
from collections.abc import Iterator

from dataset.checks import Check
from measure.probe.emulated import is_managed
from measure.probe.flows import LARGE_BYTES, overload, probe_bytes
from measure.validate.network.contract import LOSS_DEVIATIONS, Judge, OneWay
from measure.validate.network.queue_model import expected
from measure.validate.network.rate import REPEATS_TOGETHER
from tuning.impairments.contract import UP

QUEUE_TOLERANCE = 0.02
# The tolerances of a managed queue's effect, since a busy machine sends a flow less evenly than the model does.
MANAGED_TOLERANCE, MANAGED_TOLERANCE_MS = 0.15, 1.0
DROPPED_TOLERANCE, MARKED_TOLERANCE = 0.003, 0.001
# PIE's waits swing randomly about its reference.
PIE_TOLERANCE = 0.3


def _queue(way: OneWay) -> Iterator[Check]:
    """The bytes that wait in the queue."""
    seen, mbps = way.seen, way.mbps or 0
    if (queue_bytes := way.network.queue_bytes_of(way.direction)) is None:
        return
    if way.repeats:
        yield way.unchecked("queue", REPEATS_TOGETHER, queue_bytes, "bytes")
    elif seen.queue_bytes is not None and way.direction == UP and way.is_off_at_times:
        # The uplink is off at times at the client's end, before the queue, which then empties.
        yield way.unchecked("queue", "what waits in it goes while the direction is off", queue_bytes, "bytes")
    elif seen.queue_bytes is not None:
        # Only whole packets can wait, and one is being sent meanwhile.
        tolerance = QUEUE_TOLERANCE * queue_bytes + probe_bytes(queue_bytes, mbps * overload(mbps))
        if way.in_opportunities:  # the first packet, the reference for waits, may itself wait for an opportunity
            tolerance = QUEUE_TOLERANCE * queue_bytes + 2 * LARGE_BYTES
        yield way.within("queue", queue_bytes, seen.queue_bytes, tolerance, "bytes")
    elif way.trace or seen.conditions:
        why = "it moves with the trace" if way.trace else "it cannot be distinguished from a changing delay"
        yield way.unchecked("queue", why, queue_bytes, "bytes")


def _is_managed(way: OneWay) -> bool:
    queue = way.network.queue_of(way.direction)
    return not way.repeats and queue is not None and is_managed(queue)


def _managed(way: OneWay) -> Iterator[Check]:
    """The effect on packets of a queue whose length cannot be measured, compared with a model of the queue."""
    queue, mbps, network = way.network.queue_of(way.direction), way.mbps, way.network
    name = f"queue ({queue.kind if queue else ''})"
    if way.is_off_at_times:
        yield way.unchecked(name, "what is lost while the direction is off hides it")
        return
    if (seen := way.seen.managed) is None or queue is None or mbps is None:
        yield way.unchecked(name, "what waits in it moves with the trace, or with a delay that changes")
        return
    # A packet that the uplink loses never reaches its queue; one that the downlink loses has left its queue.
    offered_mbps = seen.flow.mbps * (1 - way.loss if way.direction == UP else 1)
    size_bytes = seen.flow.size_bytes
    model = expected(queue, mbps, network.min_rtt_ms, seen.flow.packets, size_bytes, offered_mbps)
    dropped = 1 - (1 - way.loss) * (1 - model.dropped)
    chance = LOSS_DEVIATIONS * math.sqrt(way.loss * (1 - way.loss) / seen.flow.packets)
    tolerance = max(MANAGED_TOLERANCE * dropped, DROPPED_TOLERANCE) + chance
    yield way.within(f"{name}, packets dropped", 100 * dropped, 100 * seen.dropped, 100 * tolerance, "%")
    tolerance = max(MANAGED_TOLERANCE * model.marked, MARKED_TOLERANCE)
    yield way.within(f"{name}, packets marked", 100 * model.marked, 100 * seen.marked, 100 * tolerance, "%")
    packet_ms = size_bytes * 8 / mbps / 1e3
    share = PIE_TOLERANCE if queue.kind == "pie" else MANAGED_TOLERANCE
    tolerance_ms = max(share * model.wait_ms, MANAGED_TOLERANCE_MS + packet_ms) + network.jitter_ms
    yield way.within(f"{name}, wait", model.wait_ms, seen.wait_ms, tolerance_ms, "ms")
    if queue.kind == "fq_codel" and queue.flows != 1:
        most_ms = 2 * packet_ms + MANAGED_TOLERANCE_MS + network.jitter_ms
        yield way.between(f"{name}, wait of another flow", 0, seen.sparse_wait_ms, most_ms, "ms")


QUEUES = (Judge(_queue, lambda way: not _is_managed(way)), Judge(_managed, _is_managed))
