"""The two programs that measure an emulated network from within a replay, one at each end.

    python -m measure.probe.emulated peer ADDRESS                          next to the servers, as the replay's monitor
    python -m measure.probe.emulated client NETWORK HOST LOST OPPORTUNITIES    on the network; prints NetworkMeasurement

OPPORTUNITIES is 1 if a link of constant rate sends only at opportunities (`replay.shells.contract`), else 0.

Both send and receive UDP datagrams (`flows`), and read the same clock. The client sends commands to the peer over a
Unix socket, which the emulated network does not affect.
"""

import itertools
import json
import math
import os
import socket
import socketserver
import statistics
import sys
import threading
import time
import timeit
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from base.errors import EyelevelError
from base.structure import from_json, to_json
from measure.probe.conditions import LetThrough, SeenConditions, let_through, seen_conditions
from measure.probe.flows import (
    ECHO,
    HEADER,
    LARGE_BYTES,
    OVERLOAD,
    SMALL_BYTES,
    SPARSE,
    Arrivals,
    Flow,
    Times,
    lost_runs,
    overload,
    probe_bytes,
    send,
)
from measure.probe.measurement import Direction, Managed, NetworkMeasurement, outages, repairs
from replay.spec import PRIVATE
from tuning.conditions import DELAY, Conditions
from tuning.impairments.contract import DOWN, UP
from tuning.impairments.rate import TRACE_LINE_BYTES, read_trace
from tuning.networks import Network
from tuning.queues import DROP_TAIL, Queue

CONTROL = str(PRIVATE / "probe")
PORT = 7  # echo (RFC 862)
HEADER_BYTES = 4  # of a TUN device; Mahimahi counts it with each packet

ECHOES = 100
ECHO_INTERVAL_S = 0.02
# Echoes are repeated until some come back, since a network may be off; at most this many rounds.
ECHO_ROUNDS = 20
PACKETS_WITHOUT_LOSS = 4000
LOSS_PACKETS_PER_S = 3000.0
LOAD = 0.9
# The load of a link that retransmits. When a repeated packet arrives, packets that waited for it follow at once; they
# must fit into a queue.
REPAIRED_LOAD = 0.3
REPAIRED_S = 20.0
# An overload of the link lasts this long.
OVERLOAD_S = 3.0
# A managed queue is not measured by how full it gets. Instead it gets MANAGED_OVERLOAD times the link's rate for
# MANAGED_S, in at least MANAGED_PACKETS_PER_S.
MANAGED_OVERLOAD, MANAGED_S, MANAGED_PACKETS_PER_S = 1.1, 6.0, 500
# How long packets may wait in a queue without a limit at the end of an overload.
UNLIMITED_WAIT_MS = 2000.0
# On and off: PERIODS periods are measured, but not for longer than LONGEST_PERIODS_S. Consecutive lost packets show
# that the link was off if there are so many that chance causes them only once in a billion packets.
PERIODS, LONGEST_PERIODS_S, LEAST_OUTAGE_PACKETS, CHANCE = 20, 90.0, 3, 1e-9
# Delays and losses over time are measured for one period, but for at most LONGEST_CONDITIONS_S, with at least
# CONDITIONS_PACKETS packets.
CONDITIONS_PACKETS_PER_S, LONGEST_CONDITIONS_S, CONDITIONS_PACKETS = 500.0, 20.0, 1000
TRACE_S, TRACE_OVERLOAD = 20.0, 6.0  # so high that even the peaks of a trace are saturated
RESOLUTIONS = 20
# At most this many numbers of lost packets are stored.
LOST_NUMBERS = 100


def peer(address: str) -> None:
    """Serve at the servers' end until the process is ended."""
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    # Answers must come from the address that was asked: Mahimahi's shells let no others through.
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
    """The client's end, which measures with the help of the peer."""

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
        # The time within which a whole flow arrives after it was sent: both delays, a full queue, and some reserve.
        self._conditions = {direction: network.conditions_of(direction) for direction in (UP, DOWN)}
        further_ms = sum(one.largest(DELAY) for one in self._conditions.values() if one)
        further_ms += sum(longest_repair_ms(network, direction) for direction in (UP, DOWN))
        self._drain_s = (network.min_rtt_ms + network.queue_wait_ms(UNLIMITED_WAIT_MS) + further_ms) / 1e3 + 0.1

    def measure(self, host: str) -> NetworkMeasurement:
        """All measurements, one after another."""
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
            in_opportunities=self._in_opportunities,
        )

    def _echoes(self) -> list[float]:
        """Round-trip times in ms, without serialisation times."""
        # Echoes are so far apart that none meets another, even with jitter.
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
        whole = self._in_opportunities  # packets take no serialisation time there
        serialising_ms = sum(SMALL_BYTES * 8 / mbps / 1e3 for mbps, trace in links if mbps and not (trace or whole))
        return [(arrived - sent) / 1e6 - serialising_ms for sent, arrived in echoes.values()]

    def _lost(self) -> tuple[Direction, Direction]:
        """Send both ways at once, so slowly that no queue drops packets: a missing packet was lost by the network."""
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
        """A flow that causes no queue on the link, and is long enough to show enough losses or repeats."""
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
            # A packet that waits for another does not show whether it was repeated itself. So at this rate, at most one
            # packet on average is lost in the time that a repeat costs; then a packet waits for no other with a
            # probability of at least 1/e. Packets that have waited leave together, and must fit into a queue.
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
        """The measurement of a direction by the arrivals of `flow`; `arrived` is in order of arrival."""
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
        """The least number of consecutive lost packets that shows that the direction was off."""
        loss, bursts = self._network.lasting_loss_of(direction), self._network.bursts_of(direction)
        again = bursts.loss_after_loss if bursts else loss
        return max(LEAST_OUTAGE_PACKETS, math.ceil(math.log(CHANCE) / math.log(again)) if again else 0)

    def _overloaded(self, direction: int, without_load: Direction) -> Direction:
        """`without_load`, to which the rate and the bytes in the queue during an overload of the link are added."""
        network, way = self._network, (UP, DOWN)[direction]
        mbps, queue = network.rate_of(way), network.queue_of(way)
        trace = (network.up_trace, network.down_trace)[direction]
        if mbps is None or network.retransmit_ms is not None or (trace and self._in_opportunities):
            # With repeats, packets that waited leave together, and show neither rate nor queue. With Mahimahi's traces,
            # the time at which the trace began is unknown.
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
            # The delay changes by itself, so the part of it that packets spend in the queue is not known.
            return replace(without_load, mbps=self._rates(direction, size_bytes, times_ns)[0])
        waited_ns = self._waited_ns(arrived)
        rate_mbps, mean_mbps = self._rates(direction, size_bytes, times_ns)
        if self._in_opportunities:
            return replace(without_load, queue_bytes=waited_ns * mean_mbps / 8e3, mean_mbps=mean_mbps)
        steady_mbps = mean_mbps if rate_mbps is None else rate_mbps
        waiting_bytes = waited_ns * steady_mbps / 8e3
        return replace(without_load, mbps=rate_mbps, queue_bytes=waiting_bytes, mean_mbps=mean_mbps)

    def _let_through(self, way: str, trace: Path, times_ns: Sequence[int]) -> LetThrough:
        """The rate that a direction's trace should let through while packets arrive at these times (monotonic
        clock)."""
        lines_ms = [int(line) for line in read_trace(trace)]
        arrived_ms = (np.array(times_ns) - _shell_started_ns()) / 1e6
        # The shell counts a header with each packet, as Mahimahi does.
        packets_per_line = TRACE_LINE_BYTES / (LARGE_BYTES + HEADER_BYTES)
        # On the way down, packets meet delays and losses after the link.
        behind, lost = (self._conditions[DOWN], self._network.lasting_loss_of(DOWN)) if way == DOWN else (None, 0.0)
        rtt_ms = self._network.min_rtt_ms
        return let_through(lines_ms, arrived_ms, LARGE_BYTES, packets_per_line, behind, lost, rtt_ms)

    def _rates(self, direction: int, size_bytes: int, times_ns: Sequence[int]) -> tuple[float | None, float]:
        """The rates of packets that came at these times, in Mbit/s: by their median gap, and by all of them
        together."""
        gaps_ns = [after - before for before, after in itertools.pairwise(times_ns)]
        # The link is busy from the first packet to the last. On the way down, packets are lost after the link, so the
        # lost ones count, too.
        passed = len(gaps_ns) / (1 - self._network.lasting_loss_of(DOWN) if direction else 1)
        mean_mbps = passed * size_bytes * 8e3 / (times_ns[-1] - times_ns[0])
        # On the way up, packets meet the delay after the link; if it varies, so do the gaps.
        is_regular = direction == 1 or not self._network.jitter_ms
        return size_bytes * 8e3 / statistics.median(gaps_ns) if is_regular else None, mean_mbps

    def _waited_ns(self, arrived: Times) -> float:
        """The time in the queue: the median over the second half of the packets that arrived."""
        # The first packet found the link idle; in the second half, the queue is as full as whole packets can make it.
        one_way_ns = [arrived[number][1] - arrived[number][0] for number in sorted(arrived)]
        return statistics.median(one_way_ns[len(one_way_ns) // 2 :]) - min(one_way_ns) - self._network.jitter_ms * 1e6

    def _managed(self, direction: int, without_load: Direction, mbps: float) -> Direction:
        """`without_load`, to which the rate, and the queue's effect on a small overload of the link, are added."""
        offered_mbps = mbps * MANAGED_OVERLOAD
        size_bytes = min(LARGE_BYTES, max(round(offered_mbps * 1e6 / 8 / MANAGED_PACKETS_PER_S), 2 * SMALL_BYTES))
        packets = round(MANAGED_S * offered_mbps * 1e6 / 8 / size_bytes)
        flow = Flow(packets, size_bytes, offered_mbps, managed=True)
        arrived, marked = self._sent(direction, flow)
        sparse_ns = [at - sent for number, (sent, at) in arrived.items() if number >= SPARSE]
        large = {number: times for number, times in arrived.items() if number < SPARSE}
        # The median gap shows the rate. The mean of all gaps does not: a queue that sometimes drops too much leaves the
        # link idle.
        rate_mbps, _ = self._rates(direction, size_bytes, sorted(at for _, at in large.values()))
        least_ns = min(at - sent for sent, at in large.values())
        # It takes less time to send a small packet than a large one, and even the first small packet may have waited
        # for a large one.
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
        """Send `flow` up (0) or down (1); returns the arrivals, and the numbers of marked packets."""
        self._arrivals.take_marked()
        if direction:
            self._ask_peer(flow)
            time.sleep(self._drain_s)
            return self._arrivals.take(), self._arrivals.take_marked()
        send(self._end, self._beside, self._server, flow)
        time.sleep(self._drain_s)
        return self._ask_peer(), self._marked

    def _ask_peer(self, flow: Flow | None = None) -> dict[int, tuple[int, int]]:
        """Let the peer send `flow`, if given; returns what has arrived at the peer, in the form of `Arrivals.take`."""
        self._control.sendall(json.dumps(flow and asdict(flow)).encode() + b"\n")
        arrived, self._marked = json.loads(self._answers.readline())
        return {int(number): (sent, at) for number, (sent, at) in arrived.items()}


def longest_repair_ms(network: Network, direction: str) -> float:
    """For how long a link repeats a packet at most, except for one in a billion packets. A packet that has not come by
    then counts as lost."""
    loss = network.loss_of(direction)
    if network.retransmit_ms is None or not loss:
        return 0.0
    tries = math.ceil(math.log(CHANCE) / math.log(loss))
    return network.retransmit_ms * min(tries, network.retransmit_tries or tries)


def is_managed(queue: Queue) -> bool:
    """Whether a queue is measured by what it does to packets, rather than by how many bytes it holds."""
    return queue.kind != DROP_TAIL or queue.limit_packets is not None


def _conditions_seen(
    conditions: Conditions, flow: Flow, arrived: Times, own_ms: float, direction: str
) -> SeenConditions:
    """The `conditions` as shown by the arrivals of `flow`, which was sent evenly; `own_ms` is the network's own
    delay."""
    started_ns = _shell_started_ns()
    first = min(arrived)
    interval_ms = flow.size_bytes * 8 / flow.mbps / 1e3
    begin_ms = (arrived[first][0] - started_ns) / 1e6 - first * interval_ms
    # The number of a missing packet shows when it was sent.
    sent_ms = {number: begin_ms + number * interval_ms for number in range(flow.packets)}
    sent_ms |= {number: (sent - started_ns) / 1e6 for number, (sent, _) in arrived.items()}
    delayed_ms = {number: (at - sent) / 1e6 - own_ms for number, (sent, at) in arrived.items()}
    return seen_conditions(conditions, sent_ms, delayed_ms, own_ms if direction == DOWN else 0.0)


def _shell_started_ns() -> int:
    """When the shell around this process began, on the monotonic clock, to a hundredth of a second (proc(5))."""
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
