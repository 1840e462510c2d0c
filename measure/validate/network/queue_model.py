"""Models of queues, independent of the shells: the expected effect of a queue on a flow of constant rate that exceeds
its link's rate.

Each follows the pseudo-code of its RFC, with times in seconds. The shells implement the same in Rust; an error in one
of the two shows as a difference between measured and expected values.
"""

import itertools
import math
import random
import statistics
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from tuning.queues import PACKET_BYTES, Queue

# RFC 8289, sections 4.2 and 4.3.
TARGET_S, INTERVAL_S = 0.005, 0.1
# RFC 8033, sections 4.1, 4.2, 4.4 and 5.1.
REFERENCE_S, MAX_BURST_S, UPDATE_S = 0.015, 0.15, 0.015
ALPHA, BETA = 0.125, 1.25
MARK_UP_TO = 0.1
SCALES = ((1e-6, 2048), (1e-5, 512), (1e-4, 128), (1e-3, 32), (1e-2, 8), (1e-1, 2))
# RFC 8290, sections 4.1 and 5.2.
FQ_PACKETS, FQ_BATCH = 10_240, 64
# Random decisions are the same each time.
SEED = 8033


@dataclass(frozen=True)
class Behaviour:
    """The effect of a queue on a flow: the shares of its packets that were dropped and marked, and the wait in the
    queue.

    The wait is the median, in ms, over the second half of the packets that got through.
    """

    dropped: float
    marked: float
    wait_ms: float


class Model:
    """A model of a queue, for packets of one size that may all be marked. This base class drops packets that do not
    fit."""

    def __init__(self, queue: Queue, limit: float, size_bytes: int) -> None:
        """`limit`: how many packets of `size_bytes` the queue holds."""
        self.queue, self.limit, self.size_bytes = queue, limit, size_bytes
        self.arrivals: deque[float] = deque()
        self.dropped = self.marked = 0

    def enqueue(self, now_s: float) -> None:
        """A packet arrives."""
        if len(self.arrivals) >= self.limit:
            self.dropped += 1
        else:
            self.arrivals.append(now_s)

    def dequeue(self, now_s: float) -> float | None:
        """The arrival time of the packet that is sent now; None if the queue is empty."""
        return self.arrivals.popleft() if self.arrivals else None


class DropHead(Model):
    """When the queue is full, drops the packet that has waited longest."""

    def enqueue(self, now_s: float) -> None:
        self.arrivals.append(now_s)
        while len(self.arrivals) > self.limit:
            self.arrivals.popleft()
            self.dropped += 1


class CoDel(Model):
    """The queue of RFC 8289, section 5; names are those of the RFC."""

    first_above_time: float | None = None
    drop_next = 0.0
    count = lastcount = 0
    dropping = False

    def dequeue(self, now_s: float) -> float | None:
        arrived, ok_to_drop = self._dodequeue(now_s)
        if arrived is None:
            self.dropping = False
            return None
        interval = _seconds(self.queue.interval_ms, INTERVAL_S)
        if self.dropping:
            self.dropping = ok_to_drop
            while self.dropping and now_s >= self.drop_next:
                self.count += 1
                if self._marks():
                    self.drop_next += interval / math.sqrt(self.count)
                    break
                arrived, ok_to_drop = self._dodequeue(now_s)
                self.dropping = ok_to_drop
                if ok_to_drop:
                    self.drop_next += interval / math.sqrt(self.count)
        elif ok_to_drop:
            if not self._marks():
                arrived, _ = self._dodequeue(now_s)
            self.dropping = True
            delta = self.count - self.lastcount
            is_recent = now_s - self.drop_next < 16 * interval
            self.count = delta if delta > 1 and is_recent else 1
            self.drop_next = now_s + interval / math.sqrt(self.count)
            self.lastcount = self.count
        return arrived

    def _dodequeue(self, now_s: float) -> tuple[float | None, bool]:
        if not self.arrivals:
            self.first_above_time = None
            return None, False
        arrived = self.arrivals.popleft()
        is_short = len(self.arrivals) * self.size_bytes <= PACKET_BYTES
        if now_s - arrived < _seconds(self.queue.target_ms, TARGET_S) or is_short:
            self.first_above_time = None
            return arrived, False
        if self.first_above_time is None:
            self.first_above_time = now_s + _seconds(self.queue.interval_ms, INTERVAL_S)
        return arrived, now_s >= self.first_above_time

    def _marks(self) -> bool:
        """Count the packet as marked if the queue may mark packets (ECN), otherwise as dropped. Returns whether it was
        marked."""
        if self.queue.ecn:
            self.marked += 1
        else:
            self.dropped += 1
        return bool(self.queue.ecn)


class FQCoDel(CoDel):
    """The queue of RFC 8290, for a single flow; the limit is that of all flows."""

    def enqueue(self, now_s: float) -> None:
        self.arrivals.append(now_s)
        while len(self.arrivals) > self.limit:
            most = len(self.arrivals)
            while self.arrivals and most - len(self.arrivals) < min(FQ_BATCH, math.ceil(most / 2)):
                self.arrivals.popleft()
                self.dropped += 1


class Pie(Model):
    """The queue of RFC 8033, section 4; the wait is taken from the packets' times (section 5.2)."""

    def __init__(self, queue: Queue, limit: float, size_bytes: int) -> None:
        super().__init__(queue, limit, size_bytes)
        self._reference_s = _seconds(queue.qdelay_ref_ms, REFERENCE_S)
        self._max_burst_s = _seconds(queue.max_burst_ms, MAX_BURST_S)
        self._burst_s = self._max_burst_s
        self._probability = self._sum = self._delay_s = self._before_s = 0.0
        self._update_s = UPDATE_S
        self._random = random.Random(SEED)

    def enqueue(self, now_s: float) -> None:
        self._update_until(now_s)
        if len(self.arrivals) >= self.limit:
            self.dropped += 1
        elif not self._drops_early():
            self.arrivals.append(now_s)
        elif self.queue.ecn and self._probability <= MARK_UP_TO:
            self.marked += 1
            self.arrivals.append(now_s)
        else:
            self.dropped += 1

    def dequeue(self, now_s: float) -> float | None:
        self._update_until(now_s)
        arrived = super().dequeue(now_s)
        if arrived is not None:
            self._delay_s = now_s - arrived if self.arrivals else 0.0
        return arrived

    def _drops_early(self) -> bool:
        is_calm = self._before_s < self._reference_s / 2 and self._probability < 0.2
        if self._burst_s > 0 or is_calm or len(self.arrivals) * self.size_bytes <= 2 * PACKET_BYTES:
            return False
        self._sum = 0.0 if self._probability == 0 else self._sum + self._probability
        if self._sum < 0.85:
            return False
        drops = self._sum >= 8.5 or self._random.random() < self._probability
        self._sum = 0.0 if drops else self._sum
        return drops

    def _update_until(self, now_s: float) -> None:
        while self._update_s <= now_s:
            change = ALPHA * (self._delay_s - self._reference_s) + BETA * (self._delay_s - self._before_s)
            change /= next((scale for most, scale in SCALES if self._probability < most), 1)
            if self._probability >= 0.1:
                change = min(change, 0.02)
            self._probability += change
            if self._delay_s == 0 and self._before_s == 0:
                self._probability *= 0.98
            self._probability = min(max(self._probability, 0.0), 1.0)
            if self._probability == 0 and max(self._delay_s, self._before_s) < self._reference_s / 2:
                self._burst_s = self._max_burst_s
            else:
                self._burst_s = max(0.0, self._burst_s - UPDATE_S)
            self._before_s = self._delay_s
            self._update_s += UPDATE_S


MODELS: Mapping[str, type[Model]] = {
    **{"infinite": Model, "droptail": Model, "drophead": DropHead},
    **{"codel": CoDel, "fq_codel": FQCoDel, "pie": Pie},
}


def expected(
    queue: Queue, rate_mbps: float, rtt_ms: float, packets: int, size_bytes: int, offered_mbps: float
) -> Behaviour:
    """The effect of `queue` before a link of this rate on this many packets that arrive evenly.

    `size_bytes`: the size of each packet. `offered_mbps`: the rate at which packets arrive. `rtt_ms`: the network's
    round-trip time, for a limit in bandwidth-delay products.
    """
    limits = [None if (size := queue.length_bytes(rate_mbps, rtt_ms)) is None else size // size_bytes]
    limits += [queue.limit_packets, FQ_PACKETS if queue.kind == "fq_codel" and not queue.has_limit else None]
    model = MODELS[queue.kind](
        queue, min((limit for limit in limits if limit is not None), default=math.inf), size_bytes
    )
    between_s, sending_s = (size_bytes * 8 / mbps / 1e6 for mbps in (offered_mbps, rate_mbps))
    waits_s: list[float] = []
    free_at_s = 0.0

    def send_until(now_s: float) -> None:
        nonlocal free_at_s
        while model.arrivals and free_at_s <= now_s:
            start_s = max(free_at_s, model.arrivals[0])
            arrived_s = model.dequeue(start_s)
            if arrived_s is not None:
                waits_s.append(start_s - arrived_s)
                free_at_s = start_s + sending_s

    for number in range(packets):
        now_s = number * between_s
        send_until(now_s)
        model.enqueue(now_s)
        send_until(now_s)
    send_until(math.inf)
    settled_s = list(itertools.islice(waits_s, len(waits_s) // 2, None))
    return Behaviour(model.dropped / packets, model.marked / packets, statistics.median(settled_s) * 1e3)


def _seconds(given_ms: float | None, otherwise_s: float) -> float:
    return otherwise_s if given_ms is None else given_ms / 1e3
