"""The two programs that measure a network from within a replay, one at each end.

    python -m measure.validate.network_probe peer ADDRESS              next to the servers, as the replay's monitor
    python -m measure.validate.network_probe client NETWORK HOST LOST OPPORTUNITIES
                                                                       behind the network; prints NetworkMeasurement

OPPORTUNITIES: 1 where a constant rate is given out in whole packets (`replay.shells.contract`), else 0.

Both send and receive UDP datagrams of a number and the time they were sent; both read the same clock. The client
gives the peer its commands over a Unix socket, which no network shapes. Arrival times are the kernel's.
"""

import itertools
import json
import math
import os
import socket
import socketserver
import statistics
import struct
import sys
import threading
import time
import timeit
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from base.errors import EyelevelError
from base.structure import from_json, to_json
from measure.validate.conditions import LetThrough, SeenConditions, let_through, seen_conditions
from replay.spec import PRIVATE
from tuning.conditions import DELAY, Conditions
from tuning.impairments.contract import DOWN, UP
from tuning.impairments.on_off import OnOff
from tuning.impairments.rate import TRACE_LINE_BYTES, read_trace
from tuning.networks import Network
from tuning.queues import DROP_TAIL, Queue

CONTROL = str(PRIVATE / "probe")
PORT = 7  # echo (RFC 862)
HEADER = struct.Struct("!cIQ")  # kind, number, time sent in ns
ECHO, DATA = b"e", b"d"
IP_UDP_BYTES = 28

SMALL_BYTES = IP_UDP_BYTES + HEADER.size
LARGE_BYTES = 1428
HEADER_BYTES = 4  # of a TUN device, which Mahimahi counts with each packet
# Smaller where few large ones fill a queue, as long as a program can keep up with so many.
QUEUE_PACKETS, OVERLOAD_PACKETS_PER_S = 40, 5000
SO_TIMESTAMPNS, SO_RCVBUFFORCE = 35, 33
BUFFER_BYTES = 1 << 22
TIMESPEC = struct.Struct("qq")
# Of a packet that may be marked, and of one that was (RFC 3168).
ECT, CE = 0b10, 0b11

ECHOES = 100
ECHO_INTERVAL_S = 0.02
# So often echoes are sent until some come back: a network may be off.
ECHO_ROUNDS = 20
PACKETS_WITHOUT_LOSS = 4000
LOSS_PACKETS_PER_S = 3000.0
LOAD = 0.9
# Of a link that retransmits: what waits for a packet goes together when it has come, and must fit into a queue then.
REPAIRED_LOAD = 0.3
REPAIRED_S = 20.0
# A packet that is late by more than the first share of what a repeat costs was repeated, or waited. It did not wait if
# the one before it was late by less than the second.
LATE_SHARE, FREE_SHARE = 0.5, 0.25
# Rate and queue: so much more than the link carries, for so long.
OVERLOAD = 1.5
OVERLOAD_S = 3.0
# A program cannot send 1.5 times as much as a fast link carries.
FAST_MBPS, FAST_OVERLOAD = 100.0, 1.15
# Queues that are not seen by how full they get: so little more, for so long, in so many packets a second at least.
# Beside every so many of them goes a packet of another flow.
MANAGED_OVERLOAD, MANAGED_S, MANAGED_PACKETS_PER_S, SPARSE_EVERY = 1.1, 6.0, 500, 25
SPARSE = 1 << 30  # its numbers begin here
# What waits in a queue that nothing limits, at the end of that.
UNLIMITED_WAIT_MS = 2000.0
# On and off: so many periods are looked at, but for no longer than this. As many packets that are lost one behind the
# other as are by chance but once in a billion packets say that it was off.
PERIODS, LONGEST_PERIODS_S, LEAST_OUTAGE_PACKETS, CHANCE = 20, 90.0, 3, 1e-9
# Delays and losses over time are looked at for one period, but not for longer, and by so many packets at least.
CONDITIONS_PACKETS_PER_S, LONGEST_CONDITIONS_S, CONDITIONS_PACKETS = 500.0, 20.0, 1000
TRACE_S, TRACE_OVERLOAD = 20.0, 6.0  # a trace must never run dry at its peaks
# A sender that was not given the processor for so long starts its schedule anew, rather than send a burst.
LATE_S = 0.02
RESOLUTIONS = 20
# So many of the packets that were lost are named.
LOST_NUMBERS = 100


@dataclass(frozen=True)
class Flow:
    """Datagrams to be sent: how many, of how many bytes (of IP), at what rate.

    `managed`: each may be marked, and beside every `SPARSE_EVERY` of them goes a small one of another flow.
    """

    packets: int
    size_bytes: int
    mbps: float
    managed: bool = False


@dataclass(frozen=True)
class Direction:
    """What was measured of one direction: rate in Mbit/s, loss of how many packets, queue in bytes.

    Of a constant rate, `mbps` is that of the usual gap between two packets, None where the rate is given out in whole
    packets, and `mean_mbps` that of all together;
    `trace` is what a trace lets through in the time in which the rate was measured. `lost_numbers` are the first
    of the packets that were lost, from 0; `lost_behind_lost` is how many of them followed another. What was lost while
    the direction was off is in `outages` alone. `least_ms` is the shortest way of a packet, without serialisation.
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
    """What was seen of a link that repeats what it loses.

    Of `free` packets, which did not wait for another, `late` came later, by `repeat_ms` in the median (None if none
    did).
    """

    free: int
    late: int
    repeat_ms: float | None


@dataclass(frozen=True)
class Outages:
    """When a direction was off: how often, for how long on average, and for how long it was on between.

    `least_s`: shorter ones cannot be told from losses.
    """

    count: int
    off_s: float
    on_s: float
    least_s: float


@dataclass(frozen=True)
class Managed:
    """What a queue did to `flow`, which was a little more than its link carries: of all packets the shares that were
    dropped and marked, the wait in the queue in the median of those in the second half, and that of another flow's
    packets, of which there were few."""

    flow: Flow
    dropped: float
    marked: float
    wait_ms: float
    sparse_wait_ms: float


@dataclass(frozen=True)
class NetworkMeasurement:
    """What was measured of a network. Times in ms; round trips are of the empty network, without serialisation."""

    rtt_min_ms: float
    rtt_median_ms: float
    rtt_p99_ms: float
    echoes: int
    resolution_ms: float
    up: Direction
    down: Direction
    rtt_sd_ms: float = 0.0


class Arrivals:
    """What arrived at a socket: number → (time sent, time it arrived), in ns; echoes on the side of the peer.

    `marked` are the numbers of those that met congestion on the way (RFC 3168). What `admits` refuses, by its content
    and its sender, is as if it had never come.
    """

    def __init__(
        self, end: socket.socket, *, echo: bool, admits: Callable[[bytes, Any], bool] = lambda data, sender: True
    ) -> None:
        self._end = end
        self._echo = echo
        self._admits = admits
        self._arrived: dict[int, tuple[int, int]] = {}
        self.marked: list[int] = []
        self.sender: Any = None
        end.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        end.setsockopt(socket.IPPROTO_IP, socket.IP_RECVTOS, 1)
        try:
            end.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
        except PermissionError:  # only root of the machine may have more than net.core.rmem_max
            end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
        self._to_monotonic_ns = _to_monotonic_ns()
        self._is_over = False
        self._receiver = threading.Thread(target=self._receive, daemon=True)
        self._receiver.start()

    def close(self) -> None:
        """Close the socket, once nothing reads it: its descriptor's number may be another's at once."""
        self._is_over = True
        # It is connected to nothing, which the kernel says after it has woken up who reads.
        with suppress(OSError):
            self._end.shutdown(socket.SHUT_RD)
        self._receiver.join()
        self._end.close()

    def __len__(self) -> int:
        return len(self._arrived)

    def __contains__(self, number: int) -> bool:
        return number in self._arrived

    def take(self) -> dict[int, tuple[int, int]]:
        """All that arrived since the last call."""
        # The kernel's stamps are of the wall clock, which may be set; over the seconds of a flow it is not.
        self._to_monotonic_ns = _to_monotonic_ns()
        arrived, self._arrived = self._arrived, {}
        return arrived

    def take_marked(self) -> list[int]:
        """The numbers of what was marked since the last call."""
        marked, self.marked = self.marked, []
        return marked

    def _receive(self) -> None:
        while True:
            data, ancillary, _, address = self._end.recvmsg(2048, 128)
            if self._is_over:
                return
            if not self._admits(data, address):
                continue
            kind, number, sent_ns = HEADER.unpack_from(data)
            if kind == ECHO and self._echo:
                self.sender = address
                # One that cannot be sent is lost, as on the way; those behind it are not.
                with suppress(OSError):
                    self._end.sendto(data, address)
                continue
            said = {what: value for _, what, value in ancillary}
            # IPv6 says it in another way, for which nobody asks.
            if said.get(socket.IP_TOS, b"\0")[0] & CE == CE:
                self.marked.append(number)
            seconds, nanoseconds = TIMESPEC.unpack(said[SO_TIMESTAMPNS][: TIMESPEC.size])
            self._arrived[number] = (sent_ns, seconds * 10**9 + nanoseconds + self._to_monotonic_ns)


def send(
    end: socket.socket,
    beside: socket.socket,
    address: Any,
    flow: Flow,
    *,
    token: bytes = b"",
    first: int = 0,
    ip_udp_bytes: int = IP_UDP_BYTES,
) -> None:
    """Send `flow` evenly, and another flow from the socket `beside` where it asks for that.

    Numbers begin at `first`; `token` is in each datagram.
    """
    interval_s = flow.size_bytes * 8 / flow.mbps / 1e6
    padding = token + bytes(flow.size_bytes - ip_udp_bytes - HEADER.size - len(token))
    end.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, ECT if flow.managed else 0)
    due_s = time.monotonic()
    for number in range(first, first + flow.packets):
        end.sendto(HEADER.pack(DATA, number, time.monotonic_ns()) + padding, address)
        if flow.managed and number % SPARSE_EVERY == 0:
            beside.sendto(HEADER.pack(DATA, SPARSE + number, time.monotonic_ns()), address)
        due_s += interval_s
        if (wait_s := due_s - time.monotonic()) > 0:
            time.sleep(wait_s)
        elif wait_s < -LATE_S:
            due_s = time.monotonic()


def _to_monotonic_ns() -> int:
    """What the monotonic clock shows more than the wall clock: by those two of several readings that are nearest."""

    def reading_ns() -> tuple[int, int]:
        before_ns, wall_ns, after_ns = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        return after_ns - before_ns, (before_ns + after_ns) // 2 - wall_ns

    return min(reading_ns() for _ in range(5))[1]


def peer(address: str) -> None:
    """Serve at the servers' end until ended."""
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    # Of several addresses, answers come from that which was asked: Mahimahi's shells let through no others.
    end.bind((address, PORT))
    beside = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    beside.bind((address, 0))
    arrivals = Arrivals(end, echo=True)

    class Commands(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            for line in self.rfile:
                if flow := json.loads(line):
                    assert arrivals.sender
                    send(end, beside, arrivals.sender, Flow(**flow))
                self.wfile.write(json.dumps([arrivals.take(), arrivals.take_marked()]).encode() + b"\n")

    with socketserver.UnixStreamServer(CONTROL, Commands) as server:
        print("ready", flush=True)
        server.serve_forever()


class Client:
    """The client's end: measures, with the help of the peer."""

    def __init__(self, network: Network, host: str, lost_packets: int, *, in_opportunities: bool) -> None:
        self._network = network
        self._in_opportunities = in_opportunities
        self._lost_packets = lost_packets
        self._server = (socket.gethostbyname(host), PORT)
        self._end, self._beside = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
        self._arrivals = Arrivals(self._end, echo=False)
        self._control = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._control.connect(CONTROL)
        self._answers = self._control.makefile("r")
        # What is on its way when a flow has been sent: both delays, a full queue, and some.
        self._conditions = {direction: network.conditions_of(direction) for direction in (UP, DOWN)}
        further_ms = sum(one.largest(DELAY) for one in self._conditions.values() if one)
        further_ms += sum(longest_repair_ms(network, direction) for direction in (UP, DOWN))
        self._drain_s = (network.min_rtt_ms + network.queue_wait_ms(UNLIMITED_WAIT_MS) + further_ms) / 1e3 + 0.1

    def measure(self, host: str) -> NetworkMeasurement:
        """All of it, one thing after another."""
        rtts_ms = sorted(self._echoes())
        up, down = self._lost()
        return NetworkMeasurement(
            rtt_min_ms=rtts_ms[0],
            rtt_median_ms=statistics.median(rtts_ms),
            rtt_p99_ms=rtts_ms[int(len(rtts_ms) * 0.99) - 1],
            echoes=len(rtts_ms),
            resolution_ms=_resolution_ms(host),
            up=self._overloaded(0, up),
            down=self._overloaded(1, down),
            rtt_sd_ms=statistics.pstdev(rtts_ms),
        )

    def _echoes(self) -> list[float]:
        """Round-trip times in ms, less what serialisation takes."""
        # None meets another, however late it is.
        interval_s = max(ECHO_INTERVAL_S, 2.2 * self._network.jitter_ms / 1e3)
        for _ in range(ECHO_ROUNDS):
            for number in range(ECHOES):
                self._end.sendto(HEADER.pack(ECHO, number, time.monotonic_ns()), self._server)
                time.sleep(interval_s)
            time.sleep(self._drain_s)
            if echoes := self._arrivals.take():
                break
        else:
            raise EyelevelError(f"none of {ECHO_ROUNDS * ECHOES} echoes came back through {self._network.name}")
        network = self._network
        links = ((network.up_mbps, network.up_trace), (network.down_mbps, network.down_trace))
        whole = self._in_opportunities  # a packet has no length there
        serialising_ms = sum(SMALL_BYTES * 8 / mbps / 1e3 for mbps, trace in links if mbps and not (trace or whole))
        return [(arrived - sent) / 1e6 - serialising_ms for sent, arrived in echoes.values()]

    def _lost(self) -> tuple[Direction, Direction]:
        """Send both ways at once what no queue drops anything of, so that what is missing was lost."""
        network = self._network
        up, down = (self._steady(mbps) for mbps in (network.up_mbps, network.down_mbps))
        sending = threading.Thread(target=send, args=(self._end, self._beside, self._server, up))
        sending.start()
        at_peer = self._ask_peer(down)
        sending.join()
        time.sleep(self._drain_s)
        arrived_up = at_peer | self._ask_peer()
        arrived_down = self._arrivals.take()
        return self._arrived(UP, up, arrived_up), self._arrived(DOWN, down, arrived_down)

    def _steady(self, link_mbps: float | None) -> Flow:
        """What a link takes without a queue, and so much of it that enough is lost, or seen to be repeated."""
        network, cost_ms = self._network, self._network.retransmit_ms
        loss = max(network.loss_of(UP), network.loss_of(DOWN))
        most_mbps = LOSS_PACKETS_PER_S * SMALL_BYTES * 8 / 1e6
        # Mahimahi counts its header with each packet.
        load = LOAD * SMALL_BYTES / (SMALL_BYTES + HEADER_BYTES) if self._in_opportunities else LOAD
        mbps = min(load * (link_mbps or most_mbps), most_mbps)
        if cost_ms is None:
            without_loss = CONDITIONS_PACKETS if any(self._conditions.values()) else PACKETS_WITHOUT_LOSS
            packets = round(self._lost_packets / loss) if loss else without_loss
        else:
            # Nothing can be told of a packet that waits for another. It waits for none with the probability 1/e, if one
            # is lost on average in the time that a repeat costs. What has waited goes together, and must fit into a
            # queue.
            mbps = min(REPAIRED_LOAD * (link_mbps or most_mbps), SMALL_BYTES * 8 / 1e3 / (loss * cost_ms))
            most_packets = REPAIRED_S * mbps * 1e6 / 8 / SMALL_BYTES
            packets = round(min(self._lost_packets * math.e / loss, most_packets))
        periods_s = [times.period_s for direction in (UP, DOWN) if (times := network.on_off_of(direction))]
        seconds = min(PERIODS * max(periods_s, default=0), LONGEST_PERIODS_S)
        if changing := [one for one in self._conditions.values() if one]:
            mbps = min(mbps, CONDITIONS_PACKETS_PER_S * SMALL_BYTES * 8 / 1e6)
            seconds = max(seconds, min(max(one.period_ms for one in changing) / 1e3, LONGEST_CONDITIONS_S))
        return Flow(max(packets, round(seconds * mbps * 1e6 / 8 / SMALL_BYTES)), SMALL_BYTES, mbps)

    def _arrived(self, direction: str, flow: Flow, arrived: dict[int, tuple[int, int]]) -> Direction:
        """What the arrivals of `flow` say of its direction, in the order in which they came."""
        network = self._network
        runs = list(lost_runs(flow.packets, arrived))
        seen = None
        if times := network.on_off_of(direction):
            least = self._least_outage(direction)
            seen = outages(arrived, [run for run in runs if len(run) >= least], flow, least, times)
            runs = [run for run in runs if len(run) < least]
        lost = [number for run in runs for number in run]
        cost_ms, mbps = network.retransmit_ms, network.rate_of(direction)
        is_whole = self._in_opportunities or network.trace_of(direction)
        serialising_ms = 0.0 if mbps is None or is_whole else SMALL_BYTES * 8 / mbps / 1e3
        conditions = None
        if (changing := self._conditions[direction]) and arrived:
            own_ms = network.delay_of(direction) + serialising_ms
            conditions = _conditions_seen(changing, flow, arrived, own_ms, direction)
        return Direction(
            len(arrived) + len(lost),
            len(lost),
            lost_numbers=tuple(lost[:LOST_NUMBERS]),
            repairs=None if cost_ms is None else repairs(arrived, cost_ms, waits=not network.retransmit_reorder),
            lost_behind_lost=sum(len(run) - 1 for run in runs),
            least_ms=min(((at - sent) / 1e6 for sent, at in arrived.values()), default=math.nan) - serialising_ms,
            in_order=[*arrived] == sorted(arrived),
            outages=seen,
            conditions=conditions,
        )

    def _least_outage(self, direction: str) -> int:
        """Of how many packets that are lost one behind the other one may say that the direction was off."""
        loss, bursts = self._network.lasting_loss_of(direction), self._network.bursts_of(direction)
        again = bursts.loss_after_loss if bursts else loss
        return max(LEAST_OUTAGE_PACKETS, math.ceil(math.log(CHANCE) / math.log(again)) if again else 0)

    def _overloaded(self, direction: int, without_load: Direction) -> Direction:
        """`without_load` with the rate, and how much waited in the queue, when there was more than the link carries."""
        network, way = self._network, (UP, DOWN)[direction]
        mbps, queue = network.rate_of(way), network.queue_of(way)
        trace = (network.up_trace, network.down_trace)[direction]
        if mbps is None or network.retransmit_ms is not None or (trace and self._in_opportunities):
            # Packets that waited for a repeat go together: they show neither rate nor queue. And when Mahimahi began a
            # trace is not known.
            return without_load
        changing = self._conditions[way]
        if queue and is_managed(queue) and not (trace or changing):
            return self._managed(direction, without_load, mbps)
        more = TRACE_OVERLOAD if trace else overload(mbps)
        wait_s = network.queue_wait_ms(UNLIMITED_WAIT_MS) / 1e3
        seconds = max(TRACE_S if trace else OVERLOAD_S, 3 * wait_s * (OVERLOAD - 1) / (more - 1))
        offered_mbps = mbps * more
        queue_bytes = network.queue_bytes_of((UP, DOWN)[direction]) or 0
        size_bytes = LARGE_BYTES if trace or self._in_opportunities else probe_bytes(queue_bytes, offered_mbps)
        packets = round(seconds * offered_mbps * 1e6 / 8 / size_bytes)
        arrived, _ = self._sent(direction, Flow(packets, size_bytes, offered_mbps))
        times_ns = sorted(at for _, at in arrived.values())
        if trace:
            seen_mbps = (len(times_ns) - 1) * LARGE_BYTES * 8e3 / (times_ns[-1] - times_ns[0])
            return replace(without_load, mbps=seen_mbps, trace=self._let_through(way, Path(trace), times_ns))
        if changing:
            # What the queue adds to a delay that changes cannot be seen.
            return replace(without_load, mbps=self._rates(direction, size_bytes, times_ns)[0])
        waited_ns = self._waited_ns(arrived)
        rate_mbps, mean_mbps = self._rates(direction, size_bytes, times_ns)
        if self._in_opportunities:
            return replace(without_load, queue_bytes=waited_ns * mean_mbps / 8e3, mean_mbps=mean_mbps)
        steady_mbps = mean_mbps if rate_mbps is None else rate_mbps
        waiting_bytes = waited_ns * steady_mbps / 8e3
        return replace(without_load, mbps=rate_mbps, queue_bytes=waiting_bytes, mean_mbps=mean_mbps)

    def _let_through(self, way: str, trace: Path, times_ns: Sequence[int]) -> LetThrough:
        """What the trace of a direction lets through while packets arrive at these times of the monotonic clock."""
        lines_ms = [int(line) for line in read_trace(trace)]
        arrived_ms = (np.array(times_ns) - _shell_started_ns()) / 1e6
        # The shell counts a header with each packet, as Mahimahi does.
        packets_per_line = TRACE_LINE_BYTES / (LARGE_BYTES + HEADER_BYTES)
        # On the way down, delays and losses are behind the link.
        behind, lost = (self._conditions[DOWN], self._network.lasting_loss_of(DOWN)) if way == DOWN else (None, 0.0)
        rtt_ms = self._network.min_rtt_ms
        return let_through(lines_ms, arrived_ms, LARGE_BYTES, packets_per_line, behind, lost, rtt_ms)

    def _rates(self, direction: int, size_bytes: int, times_ns: Sequence[int]) -> tuple[float | None, float]:
        """The rate by the usual gap of packets that came at these times, and by all of them together, in Mbit/s."""
        gaps_ns = [after - before for before, after in itertools.pairwise(times_ns)]
        # The link never rests from the first packet to the last. What is lost on the way down has passed it before.
        passed = len(gaps_ns) / (1 - self._network.lasting_loss_of(DOWN) if direction else 1)
        mean_mbps = passed * size_bytes * 8e3 / (times_ns[-1] - times_ns[0])
        # On the way up the delay is behind the link, and where it varies, so do the gaps.
        is_regular = direction == 1 or not self._network.jitter_ms
        return size_bytes * 8e3 / statistics.median(gaps_ns) if is_regular else None, mean_mbps

    def _waited_ns(self, arrived: Mapping[int, tuple[int, int]]) -> float:
        """How long a packet waited in the queue, in the median of the second half of those that arrived."""
        # The first found the link idle; in the second half the queue is as full as whole packets can make it.
        one_way_ns = [arrived[number][1] - arrived[number][0] for number in sorted(arrived)]
        return statistics.median(one_way_ns[len(one_way_ns) // 2 :]) - min(one_way_ns) - self._network.jitter_ms * 1e6

    def _managed(self, direction: int, without_load: Direction, mbps: float) -> Direction:
        """`without_load` with the rate, and what the queue did to a little more than the link carries."""
        offered_mbps = mbps * MANAGED_OVERLOAD
        size_bytes = min(LARGE_BYTES, max(round(offered_mbps * 1e6 / 8 / MANAGED_PACKETS_PER_S), 2 * SMALL_BYTES))
        packets = round(MANAGED_S * offered_mbps * 1e6 / 8 / size_bytes)
        flow = Flow(packets, size_bytes, offered_mbps, managed=True)
        arrived, marked = self._sent(direction, flow)
        sparse_ns = [at - sent for number, (sent, at) in arrived.items() if number >= SPARSE]
        large = {number: times for number, times in arrived.items() if number < SPARSE}
        # Not the mean of all: a queue that drops too much at times leaves the link at rest.
        rate_mbps, _ = self._rates(direction, size_bytes, sorted(at for _, at in large.values()))
        least_ns = min(at - sent for sent, at in large.values())
        # A small packet takes less time to send, and the first of all may have met a large one.
        sparse_wait_ms = (statistics.median(sparse_ns) - least_ns) / 1e6 if sparse_ns else math.nan
        managed = Managed(
            flow,
            dropped=1 - len(large) / packets,
            marked=sum(number < SPARSE for number in marked) / packets,
            wait_ms=self._waited_ns(large) / 1e6,
            sparse_wait_ms=max(0.0, sparse_wait_ms),
        )
        return replace(without_load, mbps=rate_mbps, managed=managed)

    def _sent(self, direction: int, flow: Flow) -> tuple[dict[int, tuple[int, int]], list[int]]:
        """Send `flow` up (0) or down (1); returns what arrived, and the numbers of what was marked."""
        self._arrivals.take_marked()
        if direction:
            self._ask_peer(flow)
            time.sleep(self._drain_s)
            return self._arrivals.take(), self._arrivals.take_marked()
        send(self._end, self._beside, self._server, flow)
        time.sleep(self._drain_s)
        return self._ask_peer(), self._marked

    def _ask_peer(self, flow: Flow | None = None) -> dict[int, tuple[int, int]]:
        """Let the peer send `flow`, if any; returns what has arrived there, as `Arrivals.take` has it."""
        self._control.sendall(json.dumps(flow and asdict(flow)).encode() + b"\n")
        arrived, self._marked = json.loads(self._answers.readline())
        return {int(number): (sent, at) for number, (sent, at) in arrived.items()}


def longest_repair_ms(network: Network, direction: str) -> float:
    """For how long a link repeats a packet, but for one in a billion; what has not come by then is lost."""
    loss = network.loss_of(direction)
    if network.retransmit_ms is None or not loss:
        return 0.0
    tries = math.ceil(math.log(CHANCE) / math.log(loss))
    return network.retransmit_ms * min(tries, network.retransmit_tries or tries)


def overload(mbps: float) -> float:
    """How many times as much as a link carries is sent to fill its queue."""
    return OVERLOAD if mbps <= FAST_MBPS else FAST_OVERLOAD


def is_managed(queue: Queue) -> bool:
    """Whether a queue is seen by what it does to packets, not by how many bytes it holds."""
    return queue.kind != DROP_TAIL or queue.limit_packets is not None


def lost_runs(packets: int, arrived: Mapping[int, tuple[int, int]]) -> Iterator[range]:
    """The numbers, from 0, of the packets that did not arrive, in groups of those behind each other."""
    before = -1
    for number in [*sorted(arrived), packets]:
        if number > before + 1:
            yield range(before + 1, number)
        before = number


def outages(
    arrived: Mapping[int, tuple[int, int]], runs: Sequence[range], flow: Flow, least_packets: int, times: OnOff
) -> Outages:
    """When a direction was off, by the times at which the packets before and behind each of `runs` were sent.

    What began before the first packet, or did not end before the last, is none.
    """
    interval_s = flow.size_bytes * 8 / flow.mbps / 1e6
    inner = [run for run in runs if run.start - 1 in arrived and run.stop in arrived]
    edges_s = [(arrived[run.start - 1][0] / 1e9, arrived[run.stop][0] / 1e9) for run in inner]
    off_s = [end_s - begin_s - interval_s for begin_s, end_s in edges_s]
    on_s = [begin_s - end_s + interval_s for (_, end_s), (begin_s, _) in itertools.pairwise(edges_s)]
    # Of times that are always the same, the median, which a busy machine does not change.
    average = statistics.median if times.periodic else statistics.fmean
    mean_off_s, mean_on_s = (average(spans) if spans else 0.0 for spans in (off_s, on_s))
    return Outages(len(on_s), mean_off_s, mean_on_s, least_packets * interval_s)


def probe_bytes(queue_bytes: int, mbps: float) -> int:
    """The size of the packets that fill a queue of `queue_bytes` at `mbps`: the smaller, the finer it is measured."""
    keeping_up_bytes = math.ceil(mbps * 1e6 / 8 / OVERLOAD_PACKETS_PER_S)
    return min(LARGE_BYTES, max(queue_bytes // QUEUE_PACKETS, keeping_up_bytes, SMALL_BYTES))


def repairs(arrived: Mapping[int, tuple[int, int]], cost_ms: float, *, waits: bool) -> Repairs:
    """How a link repeated what it lost of the packets that arrived: number → (time sent, time it arrived), in ns.

    They are in the order in which they came; a try in vain costs `cost_ms`. `waits`: whether what follows a packet
    waits for it. Of a packet that waits for another it cannot be told whether it was lost itself. Those that wait for
    none are a sample of all: whether one does has nothing to do with whether it is lost.
    """
    late_ms = {number: (at - sent) / 1e6 for number, (sent, at) in arrived.items()}
    least_ms = min(late_ms.values(), default=0)
    late_ms = {number: ms - least_ms for number, ms in late_ms.items()}
    # What is behind a packet that never came may wait for it, too.
    free_ms = [
        ms for number, ms in late_ms.items() if not waits or late_ms.get(number - 1, cost_ms) < FREE_SHARE * cost_ms
    ]
    repeated_ms = [ms for ms in free_ms if ms > LATE_SHARE * cost_ms]
    median_ms = statistics.median(repeated_ms) if repeated_ms else None
    return Repairs(len(free_ms), len(repeated_ms), median_ms)


def _conditions_seen(
    conditions: Conditions, flow: Flow, arrived: Mapping[int, tuple[int, int]], own_ms: float, direction: str
) -> SeenConditions:
    """What the arrivals of an even `flow` say of `conditions`; the network itself delays them by `own_ms`."""
    started_ns = _shell_started_ns()
    first = min(arrived)
    interval_ms = flow.size_bytes * 8 / flow.mbps / 1e3
    begin_ms = (arrived[first][0] - started_ns) / 1e6 - first * interval_ms
    # Of what has not arrived, when it was sent is known by its number.
    sent_ms = {number: begin_ms + number * interval_ms for number in range(flow.packets)}
    sent_ms |= {number: (sent - started_ns) / 1e6 for number, (sent, _) in arrived.items()}
    delayed_ms = {number: (at - sent) / 1e6 - own_ms for number, (sent, at) in arrived.items()}
    return seen_conditions(conditions, sent_ms, delayed_ms, own_ms if direction == DOWN else 0.0)


def _shell_started_ns() -> int:
    """When the shell that we run in began, on the monotonic clock, to a hundredth of a second (proc(5))."""
    pid = os.getppid()
    started_ns = 0
    while pid > 1:
        name, _, rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")
        fields = rest.split()
        if "(mm-net" in name:
            started_ns = int(fields[19]) * 10**9 // os.sysconf("SC_CLK_TCK")
        pid = int(fields[1])
    if not started_ns:
        raise EyelevelError("the probe of a trace must run inside mm-net")
    return started_ns


def _resolution_ms(host: str) -> float:
    """The median time to resolve `host`, which must not depend on the network."""
    times_s = timeit.repeat(lambda: socket.getaddrinfo(host, 443), number=1, repeat=RESOLUTIONS)
    return statistics.median(times_s) * 1e3


def main(arguments: Sequence[str]) -> None:
    if arguments[0] == "peer":
        peer(arguments[1])
    else:
        network, host, lost_packets = from_json(arguments[1], Network, "the network"), arguments[2], int(arguments[3])
        client = Client(network, host, lost_packets, in_opportunities=arguments[4] == "1")
        print(to_json(client.measure(host)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
