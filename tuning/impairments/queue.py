"""The queues of a network's links (`tuning.queues`)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tuning.impairments.contract import DOWN, UP, Impairment, Settings, units_of
from tuning.impairments.rate import Rate
from tuning.queues import DROP_TAIL, LIMITED, PACKET_BYTES, UNLIMITED, Queue

UNITS = {
    **{"kind": "", "limit_ms": "queue", "limit_bytes": "bytes", "limit_packets": "packets", "limit_bdp": "bdp"},
    **{"target_ms": "target", "interval_ms": "interval", "qdelay_ref_ms": "ref", "max_burst_ms": "burst-ms"},
    **{"ecn": "ecn", "flows": "flows"},
}


@dataclass(frozen=True, kw_only=True)
class Queues(Rate):
    """Links have drop-tail queues of `queue_ms` at their rate.

    `up_queue` and `down_queue` replace them by other queues, limited by `queue_ms` unless they have their own limit.
    """

    queue_ms: float | None = None
    up_queue: Queue | None = None
    down_queue: Queue | None = None

    def own_queue_of(self, direction: str) -> Queue | None:
        """The queue configured for one direction (`up_queue` or `down_queue`)."""
        return self.up_queue if direction == UP else self.down_queue

    def queue_of(self, direction: str) -> Queue | None:
        """The queue of one direction of the link, with its limit; None if it has no queue."""
        queue = self.own_queue_of(direction)
        if queue is None:
            return None if self.queue_ms is None else Queue(DROP_TAIL, limit_ms=self.queue_ms)
        is_limited_here = queue.has_limit or queue.kind in UNLIMITED
        return queue if is_limited_here else replace(queue, limit_ms=self.queue_ms)

    def queue_bytes_of(self, direction: str) -> int | None:
        """The most bytes that may wait in one direction's queue; None if no limit is in bytes or in time."""
        queue, rate_mbps = self.queue_of(direction), self.rate_of(direction)
        return None if queue is None or rate_mbps is None else queue.length_bytes(rate_mbps, self.min_rtt_ms)

    def queue_wait_ms(self, otherwise_ms: float) -> float:
        """The longest time that a packet may wait in a queue of either direction; `otherwise_ms` if nothing limits
        it."""
        waits_ms = [0.0]
        for direction in (UP, DOWN):
            if (queue := self.queue_of(direction)) and (rate_mbps := self.rate_of(direction)):
                wait_ms = queue.longest_wait_ms(rate_mbps, self.min_rtt_ms)
                waits_ms.append(otherwise_ms if wait_ms is None else wait_ms)
        return max(waits_ms)


def _check(network: Queues) -> None:
    has_rate = {way: bool(network.rate_of(way) or network.trace_of(way)) for way in (UP, DOWN)}
    for direction in (UP, DOWN):
        if has_rate[direction] == (network.queue_of(direction) is None):
            raise ValueError(
                f"queue_ms and a rate belong together: give both {direction}_mbps (or _trace) and queue_ms (or "
                f"{direction}_queue), or none"
            )
    if has_rate[UP] != has_rate[DOWN]:
        raise ValueError("a link needs the rates of both directions: give both, or none")
    limits = []
    for direction in (UP, DOWN):
        if (given := network.own_queue_of(direction)) is None:
            limits.append(network.queue_ms)
            continue
        given.check(f"{direction}_queue")
        if given.kind in LIMITED and not given.has_limit and network.queue_ms is None:
            raise ValueError(f"{direction}_queue: the kind {given.kind} needs a limit, such as limit_ms, or queue_ms")
        limits.append(None if given.has_limit or given.kind in UNLIMITED else network.queue_ms)
    if network.queue_ms is not None and limits == [None, None]:
        raise ValueError("queue_ms limits no queue: up_queue and down_queue have limits of their own, or none")


def _finish(network: Queues) -> Queues:
    # A queue too short for one full packet would drop every full packet that does not find the link idle.
    for direction in (UP, DOWN):
        if (size := network.queue_bytes_of(direction)) is not None and size < PACKET_BYTES:
            queue = network.own_queue_of(direction)
            key = f"{direction}_queue" if queue and queue.has_limit else "queue_ms"
            raise ValueError(f"{key} gives a queue of less than one packet of 1500 bytes")
    return network


def _words(settings: Settings) -> Iterator[str]:
    queues = {direction: _text(settings.get(f"{direction}_queue")) for direction in (UP, DOWN)}
    if queues[UP] == queues[DOWN] and queues[UP]:
        yield f"queues {queues[UP]}"
    else:
        yield from (f"{direction}link queue {queue}" for direction, queue in queues.items() if queue)


def _text(queue: Mapping[str, Any] | None) -> str:
    """A queue's kind and its configured arguments: `codel, target_ms 5, ecn`."""
    if not queue:
        return ""
    given = {name: value for name, value in queue.items() if name != "kind" and value not in (None, False)}
    return ", ".join(
        [queue["kind"], *(name if value is True else f"{name} {value:g}" for name, value in given.items())]
    )


def _arguments(network: Queues) -> Iterator[str]:
    for direction in (UP, DOWN):
        mbps, queue = network.rate_of(direction), network.queue_of(direction)
        if mbps is not None and queue:
            yield from (f"--{direction}", network.trace_of(direction) or f"{mbps:g}M")
            yield f"--{direction}link-queue={queue.kind}"
            if arguments := queue.arguments(mbps, network.min_rtt_ms):
                yield f"--{direction}link-queue-args={','.join(arguments)}"


IMPAIRMENT = Impairment(
    "queue",
    Queues,
    place=4,
    units={"queue_ms": "queue", **units_of(("up_queue", "down_queue"), UNITS)},
    check=_check,
    finish=_finish,
    words=_words,
    arguments=_arguments,
    mahimahi=dict.fromkeys(("up_queue", "down_queue"), "queues but drop-tail ones for queue_ms"),
)
