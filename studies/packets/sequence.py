"""The packets of a connection until the first request and response, captured at both ends, and their mean over runs."""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean

from studies.packets.dissection import Capture, ConnectionKey, PacketRecord
from studies.packets.layers import HEADERS


@dataclass(frozen=True)
class Step:
    """One packet: its direction, its contents, its size (least and most over runs), and when it was sent and received
    (ms from the connection's first packet). `received_ms` is NaN if the packet was lost."""

    from_server: bool
    lines: tuple[str, ...]
    bytes: tuple[int, int]
    sent_ms: float
    received_ms: float

    @property
    def is_lost(self) -> bool:
        return math.isnan(self.received_ms)


@dataclass(frozen=True)
class Exchange:
    """Steps in the order of sending, with mean times over `runs` of `all_runs`; the other runs had `others` different
    sequences."""

    steps: tuple[Step, ...]
    runs: int
    all_runs: int
    others: int


def steps(client: Capture, servers: Capture, connection: ConnectionKey) -> tuple[Step, ...]:
    """The packets that the client sent on `connection` until its first request, and the packets that the server sent
    until its first response.

    They are in the order of sending. Both captures use the same clock. A packet that one end sent and the other did not
    capture was lost.
    """
    at_client, at_servers = (
        [packet for packet in capture.packets if packet.connection == connection] for capture in (client, servers)
    )
    zero_s = min(packet.at_s for packet in at_client)
    result = []
    for sender, receiver, from_server in ((at_client, at_servers, False), (at_servers, at_client, True)):
        one_way = _match_packets(sender, receiver, zero_s, from_server=from_server)
        # The first request or response that arrived: an earlier one may have been lost and sent again.
        last = next((n for n, (step, packet) in enumerate(one_way) if _has_headers(packet) and not step.is_lost), None)
        result += [step for step, _ in one_way[: None if last is None else last + 1]]
    return tuple(sorted(result, key=lambda step: step.sent_ms))


def average(runs: Iterable[Sequence[Step]]) -> Exchange:
    """The most frequent sequence among `runs`, with the mean times of the runs with this sequence; there must be a run.

    Two runs have the same sequence if, in each direction, the same packets were sent in the same order and the same
    packets were lost. The order of packets in opposite directions does not matter.
    """
    groups: dict[object, list[Sequence[Step]]] = defaultdict(list)
    for run in runs:
        groups[_shape(run)].append(run)

    most_frequent = max(groups.values(), key=len)
    directions = ([[step for step in run if step.from_server == way] for run in most_frequent] for way in (False, True))
    means = [_mean(same) for direction in directions for same in zip(*direction, strict=True)]
    in_order = tuple(sorted(means, key=lambda step: step.sent_ms))
    return Exchange(in_order, len(most_frequent), sum(len(group) for group in groups.values()), len(groups) - 1)


def _has_headers(packet: PacketRecord) -> bool:
    """Whether `packet` carries HTTP headers, sent for the first time or again."""
    return any(HEADERS in line for line in packet.lines)


def _shape(run: Sequence[Step]) -> object:
    return tuple(tuple((step.lines, step.is_lost) for step in run if step.from_server == way) for way in (False, True))


def _mean(same: Sequence[Step]) -> Step:
    sizes = [size for step in same for size in step.bytes]
    return Step(
        same[0].from_server,
        same[0].lines,
        (min(sizes), max(sizes)),
        fmean(step.sent_ms for step in same),
        fmean(step.received_ms for step in same),
    )


def _match_packets(
    sender: Iterable[PacketRecord], receiver: Iterable[PacketRecord], zero_s: float, *, from_server: bool
) -> list[tuple[Step, PacketRecord]]:
    """The packets of one direction at both ends; packets with the same mark are taken to arrive in the order of
    sending."""
    arrivals: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for packet in receiver:
        if packet.from_server == from_server:
            arrivals[packet.mark].append(packet.at_s)
    result = []
    for packet in sender:
        if packet.from_server == from_server:
            waiting = arrivals[packet.mark]
            received_s = waiting.pop(0) if waiting else math.nan
            times_ms = (1e3 * (packet.at_s - zero_s), 1e3 * (received_s - zero_s))
            result.append((Step(from_server, packet.lines, (packet.bytes, packet.bytes), *times_ms), packet))
    return result
