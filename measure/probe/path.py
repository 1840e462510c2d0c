"""Measures a path in both directions, with a helper at its other end (`serving`).

The steps, in order:
- the round trip, by echoes;
- the rough rate of each direction, by short trains of packets, each four times as fast as the one before, until less
  arrives than was sent;
- losses, at a low rate in both directions at once;
- the rate and the queue of one direction after the other, by overloading it for some seconds. A packet's wait is
  measured relative to the fastest packet of its flow, so the clocks of the two ends may differ.
"""

import itertools
import math
import socket
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace

from base.errors import EyelevelError
from base.text import printable
from measure.probe.conversation import CONNECTING_S, Conversation, Message, ask_for_conversation, understood
from measure.probe.datagrams import End, Numbers, Times
from measure.probe.flows import LARGE_BYTES, QUEUE_PACKETS, Flow, lost_runs, overload, probe_bytes
from measure.probe.serving import Agreement, Arrived, Command, Sent
from tuning.impairments.contract import DOWN, UP

# The rates of the trains, in Mbit/s; the last is the most that a program in Python can send.
FIRST_MBPS, FASTER, MOST_MBPS = 0.25, 4.0, 600.0
# Each train has at least this many packets, so that its rate can be measured.
TRAIN_PACKETS = 50
# A direction is full when less than this share of what was sent arrives. A smaller loss may be one that the path has
# without load.
FULL_SHARE = 0.8
# A sender keeps its rate if it reaches KEPT_SHARE of it. A direction that passes less than LOADED_SHARE of what was
# sent is overloaded; otherwise more is sent, at most FLOODS times.
KEPT_SHARE, LOADED_SHARE, FLOODS = 0.9, 0.95, 4
ECHO_INTERVAL_S = 0.02
# Losses are counted at a rate of LOSS_SHARE of the direction's, with at most LOSS_PACKETS_PER_S, so that no queue
# fills.
LOSS_SHARE, LOSS_PACKETS_PER_S = 0.3, 500.0
# Packets are given up when none has come for a round trip and this much longer (s).
QUIET_S = 0.3
# The rate over time is taken from GROUPS groups of packets, each with at least LEAST_GROUP packets.
GROUPS, LEAST_GROUP = 12, 20
# The link counts as busy before a packet that waited for more than this share of a full queue. (The wait of a single
# packet can also come from a sender or a machine that stood still.)
BUSY_SHARE = 0.25
# The median gap between packets shows a link's rate, even if packets are lost after the link. It does not if packets
# come in bursts: then it differs from the mean gap by more than this.
REGULAR_SHARE = 0.1
# A drop-tail queue drops packets only while it is full. A loss is early if packets then wait for less than
# NEARLY_FULL_SHARE of the usual time. A queue is managed if early losses, less twice the losses without load, are more
# than EARLY_SHARE of all losses and more than EARLY_PACKETS.
NEARLY_FULL_SHARE, EARLY_SHARE, EARLY_PACKETS = 0.8, 0.1, 5
# If a queue dropped packets less often than this, the drops do not show how long packets wait in the full queue.
LEAST_DROPS = 10
# A queue has filled if it drops at least this share of the packets that exceed the link's rate.
DROPPED_SHARE = 0.5
# A queue whose limit is in packets seems shorter when it is filled with short packets: by at least COUNTED_SHARE of its
# length and COUNTED_PACKETS full-sized packets.
COUNTED_SHARE, COUNTED_PACKETS = 0.3, 2


@dataclass(frozen=True)
class Effort:
    """The extent of a probe: the most bytes that it may send, the number of echoes, the duration (s) of trains, losses
    and overload, and the time limit of the whole."""

    most_bytes: int
    echoes: int = 100
    train_s: float = 0.25
    loss_s: float = 10.0
    overload_s: float = 3.0
    longest_s: float = 180.0

    @classmethod
    def quick(cls, most_bytes: int) -> "Effort":
        """A short probe, with wider intervals, to try whether probing works."""
        return cls(most_bytes, echoes=30, loss_s=2.0, overload_s=1.5, longest_s=90.0)


@dataclass(frozen=True)
class Flood:
    """Observations of an overloaded direction.

    `mbps` is its rate, including IP and UDP headers; 80 % of groups of consecutive packets had rates from `low_mbps` to
    `high_mbps`. `wait_ms` is the median wait in a full queue, and 80 % of waits were from `low_wait_ms` to
    `high_wait_ms`, measured by `packets` packets. `fills`: whether the queue became full; `is_managed`: whether it
    drops packets before it is full.
    """

    mbps: float
    low_mbps: float
    high_mbps: float
    wait_ms: float
    low_wait_ms: float
    high_wait_ms: float
    packets: int
    fills: bool
    is_managed: bool


@dataclass(frozen=True)
class Way(Flood):
    """The measurement of a direction: its rate with full-sized packets, and its queue with smaller packets, which show
    it more finely.

    `counts_packets`: whether the queue's limit is in packets rather than bytes. Without load, `lost` of `sent` packets
    were lost, `behind_lost` of these after another lost one.
    """

    counts_packets: bool
    sent: int
    lost: int
    behind_lost: int


@dataclass(frozen=True)
class PathMeasurement:
    """The measurement of a path. Round trips are in ms; the minimum is without the time to send a packet."""

    address: str
    port: int
    is_v6: bool
    min_rtt_ms: float
    median_rtt_ms: float
    late_rtt_ms: float
    echoes: int
    echoes_sent: int
    up: Way
    down: Way
    up_bytes: int
    down_bytes: int
    seconds: float


@contextmanager
def conversation_with(host: str, port: int, secret: bytes) -> Iterator[tuple[Conversation, End, socket.socket]]:
    """The conversation with the other end of the path to `host`, and this end for datagrams. Raises EyelevelError."""
    try:
        connection = socket.create_connection((host, port), CONNECTING_S)
    except OSError as error:
        raise EyelevelError(
            f"no answer from {printable(host)}, port {port} ({error.strerror or error}); is 'eyelevel probe-network "
            "--serve' running there, and can its port be reached by TCP and UDP?"
        ) from None
    with connection:
        here, _, *scope = connection.getsockname()
        end = End(connection.family, (here, 0, *scope), echo=False)
        try:
            with ask_for_conversation(connection, secret) as conversation:
                yield conversation, end, connection
        finally:
            end.close()


def measure_path(host: str, port: int, secret: bytes, effort: Effort, tell: Callable[[str], None]) -> PathMeasurement:
    """Measure the path to `host`; call `tell` with each result as soon as it is known. Raises EyelevelError."""
    with conversation_with(host, port, secret) as (conversation, end, connection):
        agreed = understood(conversation.hear(), Agreement)
        if (allowed := agreed.most_bytes) < effort.most_bytes:
            tell(f"the other end sends {allowed / 1e6:g} MB at most")
        other = connection.getpeername()
        end.begin(bytes.fromhex(agreed.token), other[0])
        measurement = _Probe(conversation, end, other, effort, allowed, tell).measurement()
        conversation.say({"end": True})
        return measurement


class _Probe:
    def __init__(
        self,
        conversation: Conversation,
        end: End,
        other: tuple[str, int],
        effort: Effort,
        allowed_bytes: int,
        tell: Callable[[str], None],
    ) -> None:
        self._conversation, self._end, self._other, self._effort, self._tell = conversation, end, other, effort, tell
        self._allowed_bytes = allowed_bytes
        self._begin_s = time.monotonic()
        # The lowest number not yet used for a packet.
        self._next = 0
        self._bytes = {UP: 0, DOWN: 0}
        self._quiet_s = QUIET_S + 1.0

    def measurement(self) -> PathMeasurement:
        """All measurements, one after the other."""
        rtts_ms = self._echoes()
        self._quiet_s = QUIET_S + rtts_ms[-1] / 1e3
        rough_mbps = {way: self._rough_mbps(way) for way in (UP, DOWN)}
        self._require(rough_mbps)
        lost = self._lost(rough_mbps)
        up, down = (self._overloaded(way, rough_mbps[way], *lost[way]) for way in (UP, DOWN))
        sending_ms = sum(self._end.least_bytes * 8 / way.mbps / 1e3 for way in (up, down))
        return PathMeasurement(
            *(self._other[0], self._other[1], ":" in self._other[0]),
            min_rtt_ms=max(0.0, rtts_ms[0] - sending_ms),
            median_rtt_ms=statistics.median(rtts_ms),
            late_rtt_ms=rtts_ms[math.ceil(0.95 * len(rtts_ms)) - 1],
            echoes=len(rtts_ms),
            echoes_sent=self._effort.echoes,
            up=up,
            down=down,
            up_bytes=self._bytes[UP],
            down_bytes=self._bytes[DOWN],
            seconds=time.monotonic() - self._begin_s,
        )

    def _echoes(self) -> list[float]:
        """Round-trip times in ms, the shortest first."""
        numbers = self._numbers(self._effort.echoes)
        for number in range(numbers.first, numbers.last + 1):
            self._end.send_echo(number, self._other)
            time.sleep(ECHO_INTERVAL_S)
        self._bytes[UP] += numbers.packets * self._end.least_bytes
        rtts_ms = sorted((at - sent) / 1e6 for sent, at in self._end.arrived(numbers, self._quiet_s).values())
        if not rtts_ms:
            raise EyelevelError(
                f"none of {numbers.packets} datagrams came back from {self._other[0]}, though its TCP answers: UDP to "
                f"port {self._other[1]} must pass in both directions (firewalls on the path, and on both machines)"
            )
        self._tell(f"round trip: {rtts_ms[0]:.4g} ms at least, {len(rtts_ms)} of {numbers.packets} echoes came back")
        return rtts_ms

    def _rough_mbps(self, way: str) -> float:
        """Roughly the rate of a direction. (Less, if a machine or the path stood still meanwhile.)"""
        offered_mbps = FIRST_MBPS
        while True:
            train_bytes = offered_mbps * 1e6 / 8 * self._effort.train_s
            size_bytes = max(self._end.least_bytes, min(LARGE_BYTES, round(train_bytes / TRAIN_PACKETS)))
            flow = Flow(max(TRAIN_PACKETS, round(train_bytes / size_bytes)), size_bytes, offered_mbps)
            _, sent_mbps, arrived = self._passed(way, flow)
            if len(arrived) <= LEAST_GROUP / 2:
                raise EyelevelError(
                    f"{len(arrived)} of {flow.packets} datagrams of {size_bytes} bytes arrived {_where(way)}, at "
                    f"{offered_mbps:g} Mbit/s: too few to measure anything, or longer than the path's packets may be"
                )
            seen_mbps = _mean_mbps(size_bytes, _times(arrived))
            if seen_mbps < FULL_SHARE * sent_mbps:
                self._tell(f"{way}: about {seen_mbps:.3g} Mbit/s")
                return seen_mbps
            if offered_mbps == MOST_MBPS:
                raise _too_slow(way, sent_mbps)
            offered_mbps = min(offered_mbps * FASTER, MOST_MBPS)

    def _require(self, rough_mbps: dict[str, float]) -> None:
        """Raises EyelevelError unless the bytes still to be sent are allowed."""
        seconds, sent_bytes = self._effort.overload_s, sum(self._bytes.values())
        more_bytes = [2 * seconds * overload(mbps) * mbps * 1e6 / 8 for mbps in rough_mbps.values()]
        allowed_bytes = min(self._effort.most_bytes, self._allowed_bytes)
        if (needed_bytes := sent_bytes + sum(more_bytes)) > allowed_bytes:
            raise EyelevelError(
                f"a path of {rough_mbps[UP]:.3g} Mbit/s up and {rough_mbps[DOWN]:.3g} down needs "
                f"{needed_bytes / 1e6:.0f} MB, and {allowed_bytes / 1e6:g} are allowed; where its owner and its other "
                f"users agree, repeat with --most-mb {math.ceil(needed_bytes / 0.9e6)} at both ends"
            )

    def _lost(self, rough_mbps: dict[str, float]) -> dict[str, tuple[int, int, int]]:
        """Direction → numbers of packets without load: sent, lost, and lost after another lost one."""
        most_mbps = LOSS_PACKETS_PER_S * self._end.least_bytes * 8 / 1e6
        flows, numbers = {}, {}
        for way in (UP, DOWN):
            mbps = min(LOSS_SHARE * rough_mbps[way], most_mbps)
            packets = round(self._effort.loss_s * mbps * 1e6 / 8 / self._end.least_bytes)
            flows[way] = Flow(packets, self._end.least_bytes, mbps)
            numbers[way] = self._numbers(packets)
            self._count(way, flows[way])
        faults: list[EyelevelError] = []

        def send_up() -> None:
            try:
                self._end.sent(flows[UP], numbers[UP].first, self._other)
            except EyelevelError as error:
                faults.append(error)

        sending = threading.Thread(target=send_up)
        sending.start()
        try:
            self._ask(flows[DOWN], numbers[DOWN], sends=True)
        finally:
            sending.join()
        for fault in faults:
            raise fault
        arrived = {UP: self._arrived_there(flows[UP], numbers[UP])}
        arrived[DOWN] = self._end.arrived(numbers[DOWN], self._quiet_s)
        seen = {}
        for way in (UP, DOWN):
            shifted = {number - numbers[way].first: times for number, times in arrived[way].items()}
            runs = [len(run) for run in lost_runs(flows[way].packets, shifted)]
            seen[way] = (flows[way].packets, sum(runs), sum(runs) - len(runs))
            self._tell(f"{way}: {sum(runs)} of {flows[way].packets} packets lost without load")
        return seen

    def _overloaded(self, way: str, rough_mbps: float, sent: int, lost: int, behind_lost: int) -> Way:
        """The rate and the queue of a direction, by overloading it."""
        loss = lost / sent
        large = self._flooded(way, rough_mbps, LARGE_BYTES, loss)
        queue = large
        counts_packets = False
        # Shorter packets show the queue's length more finely, and whether its limit is in packets.
        waiting_bytes, offered_mbps = large.wait_ms * large.mbps * 1e3 / 8, large.mbps * overload(large.mbps)
        size_bytes = probe_bytes(min(round(waiting_bytes), QUEUE_PACKETS * LARGE_BYTES // 2), offered_mbps)
        if (size_bytes := max(size_bytes, self._end.least_bytes)) <= LARGE_BYTES // 2:
            fine = self._flooded(way, large.mbps, size_bytes, loss)
            packet_ms = LARGE_BYTES * 8 / large.mbps / 1e3
            differs_ms = max(COUNTED_SHARE * large.wait_ms, COUNTED_PACKETS * packet_ms)
            counts_packets = not large.is_managed and large.wait_ms - fine.wait_ms > differs_ms
            # A queue that counts packets holds fewer bytes of short packets. So its length is that for full-sized
            # packets, such as most of a page's.
            queue = large if counts_packets else fine
        self._tell(f"{way}: {large.mbps:.4g} Mbit/s, queue {queue.wait_ms:.4g} ms")
        seen = replace(queue, mbps=large.mbps, low_mbps=large.low_mbps, high_mbps=large.high_mbps)
        return Way(**vars(seen), counts_packets=counts_packets, sent=sent, lost=lost, behind_lost=behind_lost)

    def _flooded(self, way: str, mbps: float, size_bytes: int, loss: float) -> Flood:
        """Observe a direction, which loses the share `loss` without load, while packets of this size overload it."""
        for _ in range(FLOODS):
            offered_mbps = mbps * overload(mbps)
            flow = Flow(round(self._effort.overload_s * offered_mbps * 1e6 / 8 / size_bytes), size_bytes, offered_mbps)
            numbers, sent_mbps, arrived = self._passed(way, flow)
            if len(arrived) <= 2 * LEAST_GROUP:
                words = f"{len(arrived)} of {flow.packets} datagrams arrived"
                raise EyelevelError(f"{words} {_where(way)}: is the path broken?")
            seen = flood(size_bytes, sent_mbps, numbers, arrived, loss)
            keeps_rate = sent_mbps > KEPT_SHARE * offered_mbps
            # A sender that had to wait for the processor sends too little at some times, and too much at others.
            if seen.mbps < LOADED_SHARE * (1 - loss) * sent_mbps and (keeps_rate or seen.fills):
                return seen
            if keeps_rate:
                mbps = offered_mbps
        raise _too_slow(way, sent_mbps)

    def _passed(self, way: str, flow: Flow) -> tuple[Numbers, float, Times]:
        """Send `flow` in a direction; returns its numbers, its actual rate, and the arrivals."""
        numbers = self._numbers(flow.packets)
        self._count(way, flow)
        if way == UP:
            mbps = self._end.sent(flow, numbers.first, self._other)
            return numbers, mbps, self._arrived_there(flow, numbers)
        mbps = understood(self._ask(flow, numbers, sends=True), Sent).mbps
        return numbers, mbps, self._end.arrived(numbers, self._quiet_s)

    def _arrived_there(self, flow: Flow, numbers: Numbers) -> Times:
        """The packets of `flow` that have arrived at the other end."""
        return understood(self._ask(flow, numbers, sends=False), Arrived).of(numbers)

    def _ask(self, flow: Flow, numbers: Numbers, *, sends: bool) -> Message:
        return self._conversation.ask(asdict(Command(flow, numbers.first, sends, self._quiet_s)))

    def _numbers(self, packets: int) -> Numbers:
        numbers = Numbers(self._next, packets)
        self._next += packets
        return numbers

    def _count(self, way: str, flow: Flow) -> None:
        """Count `flow` as sent. Raises EyelevelError when that exceeds the allowed bytes, or the time limit has
        passed."""
        self._bytes[way] += flow.packets * flow.size_bytes
        if sum(self._bytes.values()) > (most_bytes := min(self._effort.most_bytes, self._allowed_bytes)):
            raise EyelevelError(
                f"the next flow, of {flow.mbps:.3g} Mbit/s, would be more than the {most_bytes / 1e6:g} MB that are "
                "allowed; where the path's owner and its other users agree, repeat with more (--most-mb, at both ends)"
            )
        if time.monotonic() - self._begin_s > self._effort.longest_s:
            raise EyelevelError(f"the probe has not ended in {self._effort.longest_s:g} s; is the path in use?")


def flood(size_bytes: int, sent_mbps: float, numbers: Numbers, arrived: Times, loss: float) -> Flood:
    """The observation of an overloaded direction, by the arrivals of a flow of `numbers` that was sent at `sent_mbps`.

    Without load, the direction loses the share `loss`.
    """
    least_ns = min(at - sent for sent, at in arrived.values())
    waits_ns = {number: arrived[number][1] - arrived[number][0] - least_ns for number in sorted(arrived)}
    # A packet after a dropped one waits as long as the dropped one would have, to within one packet.
    drops = [(after, after - before - 1) for before, after in itertools.pairwise(waits_ns) if after > before + 1]
    full = [after for after, _ in drops] if len(drops) >= LEAST_DROPS else [*waits_ns][len(waits_ns) // 2 :]
    full_waits_ns = [waits_ns[number] for number in full]
    wait_ns = statistics.median(full_waits_ns)
    wait_tenths_ns = statistics.quantiles(full_waits_ns, n=10, method="inclusive")

    in_time = sorted(arrived, key=lambda number: arrived[number][1])
    gaps_ns = [
        max(arrived[after][1] - arrived[before][1], 1)
        for before, after in itertools.pairwise(in_time)
        if waits_ns[after] >= BUSY_SHARE * wait_ns
    ]
    if len(gaps_ns) < 2 * LEAST_GROUP:
        gaps_ns = [max(after - before, 1) for before, after in itertools.pairwise(_times(arrived))]
    usual_mbps, mean_mbps = (size_bytes * 8e3 / gap for gap in (statistics.median(gaps_ns), statistics.fmean(gaps_ns)))
    mbps = usual_mbps if abs(usual_mbps / mean_mbps - 1) < REGULAR_SHARE else mean_mbps
    group = max(LEAST_GROUP, len(gaps_ns) // GROUPS)
    # A queue holds only whole packets, so on average half a packet's time is unused.
    low_wait_ms, usual_wait_ms, high_wait_ms = (
        (ns + size_bytes * 4e3 / mbps) / 1e6 for ns in (wait_tenths_ns[0], wait_ns, wait_tenths_ns[-1])
    )
    begins = range(0, len(gaps_ns) - group + 1, group)
    rates_mbps = [size_bytes * 8e3 / statistics.fmean(gaps_ns[begin : begin + group]) for begin in begins]
    tenths_mbps = statistics.quantiles(rates_mbps, n=10, method="inclusive")

    full_ns = NEARLY_FULL_SHARE * wait_ns - size_bytes * 8e3 / mbps
    lost = sum(packets for _, packets in drops)
    early = sum(packets for after, packets in drops if waits_ns[after] < full_ns)
    middle = numbers.first + numbers.packets // 2
    arrived_late = sum(number >= middle for number in waits_ns)
    dropped = 1 - arrived_late / (numbers.last + 1 - middle)
    return Flood(
        mbps,
        tenths_mbps[0],
        tenths_mbps[-1],
        usual_wait_ms,
        low_wait_ms,
        high_wait_ms,
        len(arrived),
        fills=dropped > DROPPED_SHARE * (1 - mbps / sent_mbps),
        is_managed=early - 2 * loss * numbers.packets > max(EARLY_SHARE * lost, EARLY_PACKETS),
    )


def _times(arrived: Times) -> list[int]:
    """When packets arrived, in ns, in order."""
    return sorted(at for _, at in arrived.values())


def _mean_mbps(size_bytes: int, times_ns: Sequence[int]) -> float:
    """The rate of packets of this size that arrived at these times."""
    return (len(times_ns) - 1) * size_bytes * 8e3 / max(times_ns[-1] - times_ns[0], 1)


def _too_slow(way: str, sent_mbps: float) -> EyelevelError:
    slow = "this machine" if way == UP else "the other machine"
    return EyelevelError(
        f"{slow} is too slow for this path: it sent {sent_mbps:.3g} Mbit/s {_where(way)}, and all of it passed, so "
        "the path's rate is unknown; end other programs there, or use a faster machine"
    )


def _where(way: str) -> str:
    return "on the way to the other machine" if way == UP else "on the way from the other machine"
