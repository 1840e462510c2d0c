"""The packets of a connection until the first request and response, as both ends saw them; means of runs with alike."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from studies.packets.capture import Capture, Connection, Packet
from studies.packets.layers import HEADERS


@dataclass(frozen=True)
class Step:
    """One packet: which way it went, what it carried, how large it was, when it left and came (ms from the
    connection's first). `received_ms` is not a number when it was lost."""

    from_server: bool
    lines: tuple[str, ...]
    bytes: tuple[int, int]
    sent_ms: float
    received_ms: float

    @property
    def lost(self) -> bool:
        return math.isnan(self.received_ms)


@dataclass(frozen=True)
class Exchange:
    """Steps in the order they left, with times averaged over so many `runs`, out of `all_runs`; the others had
    `others` different sequences."""

    steps: tuple[Step, ...]
    runs: int
    all_runs: int
    others: int


def steps(client: Capture, servers: Capture, connection: Connection) -> tuple[Step, ...]:
    """What the client sent on `connection` until its first request, and the server until its first response.

    In the order they left. Both captures are of one machine's clock. A packet that one end sent and the other has not
    seen was lost.
    """
    here, there = (_of(capture, connection) for capture in (client, servers))
    zero_s = min(packet.at_s for packet in here)
    found = []
    for sender, receiver, from_server in ((here, there, False), (there, here, True)):
        crossed = _crossed(sender, receiver, zero_s, from_server=from_server)
        # The first that arrived: before it, one that was lost may have to be sent again.
        last = next((n for n, (step, packet) in enumerate(crossed) if _asks(packet) and not step.lost), None)
        found += [step for step, _ in crossed[: None if last is None else last + 1]]
    return tuple(sorted(found, key=lambda step: step.sent_ms))


def averaged(runs: Iterable[Sequence[Step]]) -> Exchange | None:
    """The most frequent sequence among `runs`, with the mean times of those that had it; None of no runs.

    Two runs had the same if, each way, the same packets were sent in the same order, and the same were lost. Which of
    two packets that crossed left earlier does not matter.
    """
    groups: dict[object, list[Sequence[Step]]] = defaultdict(list)
    for run in runs:
        groups[_shape(run)].append(run)
    if not groups:
        return None
    chosen = max(groups.values(), key=len)
    directions = ([[step for step in run if step.from_server == way] for run in chosen] for way in (False, True))
    means = [_mean(alike) for direction in directions for alike in zip(*direction, strict=True)]
    ordered = tuple(sorted(means, key=lambda step: step.sent_ms))
    return Exchange(ordered, len(chosen), sum(len(group) for group in groups.values()), len(groups) - 1)


def _asks(packet: Packet) -> bool:
    """Whether it has (a part of) a request or response, sent for the first time or again."""
    return any(HEADERS in line for line in packet.lines)


def _shape(run: Sequence[Step]) -> object:
    return tuple(tuple((step.lines, step.lost) for step in run if step.from_server == way) for way in (False, True))


def _mean(alike: Sequence[Step]) -> Step:
    sizes = [size for step in alike for size in step.bytes]
    return Step(
        alike[0].from_server,
        alike[0].lines,
        (min(sizes), max(sizes)),
        fmean(step.sent_ms for step in alike),
        fmean(step.received_ms for step in alike),
    )


def _of(capture: Capture, connection: Connection) -> list[Packet]:
    return [packet for packet in capture.packets if packet.connection == connection]


def _crossed(
    sender: Iterable[Packet], receiver: Iterable[Packet], zero_s: float, *, from_server: bool
) -> list[tuple[Step, Packet]]:
    """The packets of one direction at both ends; those that look alike came in the order they left."""
    arrivals: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for packet in receiver:
        if packet.from_server == from_server:
            arrivals[packet.mark].append(packet.at_s)
    found = []
    for packet in sender:
        if packet.from_server == from_server:
            waiting = arrivals[packet.mark]
            received_s = waiting.pop(0) if waiting else math.nan
            times_ms = (1e3 * (packet.at_s - zero_s), 1e3 * (received_s - zero_s))
            found.append((Step(from_server, packet.lines, (packet.bytes, packet.bytes), *times_ms), packet))
    return found
