"""The two programs that measure a network from within a replay, one at each end.

    python -m measure.validate.network_probe peer ADDRESS              next to the servers, as the replay's monitor
    python -m measure.validate.network_probe client NETWORK HOST LOST OPPORTUNITIES
                                                                       behind the network; prints NetworkMeasurement

OPPORTUNITIES: 1 where a constant rate is given out in whole packets (`replay.shells.contract`), else 0.

Both send and receive UDP datagrams of a number and the time they were sent; both read the same clock. The client
gives the peer its commands over a Unix socket, which no network shapes. Arrival times are the kernel's.
"""

import bisect
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
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from base.errors import EyelevelError
from base.structure import from_json, to_json
from replay.spec import PRIVATE
from tuning.networks import TRACE_LINE_BYTES, Network, read_trace

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

ECHOES = 100
ECHO_INTERVAL_S = 0.02
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
TRACE_S, TRACE_OVERLOAD = 20.0, 6.0  # a trace must never run dry at its peaks
# A sender that was not given the processor for so long starts its schedule anew, rather than send a burst.
LATE_S = 0.02
RESOLUTIONS = 20
# So many of the packets that were lost are named.
LOST_NUMBERS = 100


@dataclass(frozen=True)
class Flow:
    """Datagrams to be sent: how many, of how many bytes (of IP), at what rate."""

    packets: int
    size_bytes: int
    mbps: float


@dataclass(frozen=True)
class Direction:
    """What was measured of one direction: rate in Mbit/s, loss of how many packets, queue in bytes.

    Of a constant rate, `mbps` is that of the usual gap between two packets, None where the rate is given out in whole
    packets, and `mean_mbps` that of all together;
    `trace_mbps` is what a trace lets through in the time in which the rate was measured. `lost_numbers` are the first
    of the packets that were lost, from 0.
    """

    sent: int
    lost: int
    mbps: float | None = None
    queue_bytes: float | None = None
    trace_mbps: float | None = None
    mean_mbps: float | None = None
    lost_numbers: tuple[int, ...] = ()
    repairs: "Repairs | None" = None


@dataclass(frozen=True)
class Repairs:
    """What was seen of a link that repeats what it loses.

    Of `free` packets, which did not wait for another, `late` came later, by `repeat_ms` in the median (None if none
    did). `in_order`: whether no packet overtook another.
    """

    free: int
    late: int
    repeat_ms: float | None
    in_order: bool


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


class Arrivals:
    """What arrived at a socket: number → (time sent, time it arrived), in ns; echoes on the side of the peer."""

    def __init__(self, end: socket.socket, *, echo: bool) -> None:
        self._end = end
        self._echo = echo
        self._arrived: dict[int, tuple[int, int]] = {}
        self.sender: tuple[str, int] | None = None
        end.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        try:
            end.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, BUFFER_BYTES)
        except PermissionError:  # only root of the machine may have more than net.core.rmem_max
            end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
        # The kernel's stamps are of the wall clock, which may be set; over the seconds of a probe it is not.
        self._to_monotonic_ns = time.monotonic_ns() - time.time_ns()
        threading.Thread(target=self._receive, daemon=True).start()

    def take(self) -> dict[int, tuple[int, int]]:
        """All that arrived since the last call."""
        arrived, self._arrived = self._arrived, {}
        return arrived

    def _receive(self) -> None:
        while True:
            data, ancillary, _, address = self._end.recvmsg(2048, 64)
            kind, number, sent_ns = HEADER.unpack_from(data)
            if kind == ECHO and self._echo:
                self.sender = address
                self._end.sendto(data, address)
                continue
            seconds, nanoseconds = TIMESPEC.unpack(ancillary[0][2][: TIMESPEC.size])
            self._arrived[number] = (sent_ns, seconds * 10**9 + nanoseconds + self._to_monotonic_ns)


def send(end: socket.socket, address: tuple[str, int], flow: Flow) -> None:
    """Send `flow` evenly."""
    interval_s = flow.size_bytes * 8 / flow.mbps / 1e6
    padding = bytes(flow.size_bytes - SMALL_BYTES)
    due_s = time.monotonic()
    for number in range(flow.packets):
        end.sendto(HEADER.pack(DATA, number, time.monotonic_ns()) + padding, address)
        due_s += interval_s
        if (wait_s := due_s - time.monotonic()) > 0:
            time.sleep(wait_s)
        elif wait_s < -LATE_S:
            due_s = time.monotonic()


def peer(address: str) -> None:
    """Serve at the servers' end until ended."""
    end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    # Of several addresses, answers come from that which was asked: Mahimahi's shells let through no others.
    end.bind((address, PORT))
    arrivals = Arrivals(end, echo=True)

    class Commands(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            for line in self.rfile:
                if flow := json.loads(line):
                    assert arrivals.sender
                    send(end, arrivals.sender, Flow(**flow))
                self.wfile.write(json.dumps(arrivals.take()).encode() + b"\n")

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
        self._end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._arrivals = Arrivals(self._end, echo=False)
        self._control = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._control.connect(CONTROL)
        self._answers = self._control.makefile("r")
        # What is on its way when a flow has been sent: both delays, a full queue, and some.
        self._drain_s = (network.min_rtt_ms + (network.queue_ms or 0)) / 1e3 + 0.1

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
        )

    def _echoes(self) -> list[float]:
        """Round-trip times in ms, less what serialisation takes."""
        for number in range(ECHOES):
            self._end.sendto(HEADER.pack(ECHO, number, time.monotonic_ns()), self._server)
            time.sleep(ECHO_INTERVAL_S)
        time.sleep(self._drain_s)
        network = self._network
        links = ((network.up_mbps, network.up_trace), (network.down_mbps, network.down_trace))
        whole = self._in_opportunities  # a packet has no length there
        serialising_ms = sum(SMALL_BYTES * 8 / mbps / 1e3 for mbps, trace in links if mbps and not (trace or whole))
        return [(arrived - sent) / 1e6 - serialising_ms for sent, arrived in self._arrivals.take().values()]

    def _lost(self) -> tuple[Direction, Direction]:
        """Send both ways at once what no queue drops anything of, so that what is missing was lost."""
        network = self._network
        up, down = (self._steady(mbps) for mbps in (network.up_mbps, network.down_mbps))
        sending = threading.Thread(target=send, args=(self._end, self._server, up))
        sending.start()
        at_peer = self._ask_peer(down)
        sending.join()
        time.sleep(self._drain_s)
        arrived_up = at_peer | self._ask_peer()
        arrived_down = self._arrivals.take()
        return self._arrived(up, arrived_up), self._arrived(down, arrived_down)

    def _steady(self, link_mbps: float | None) -> Flow:
        """What a link takes without a queue, and so much of it that enough is lost, or seen to be repeated."""
        loss, cost_ms = max(self._network.up_loss, self._network.down_loss), self._network.retransmit_ms
        most_mbps = LOSS_PACKETS_PER_S * SMALL_BYTES * 8 / 1e6
        # Mahimahi counts its header with each packet.
        load = LOAD * SMALL_BYTES / (SMALL_BYTES + HEADER_BYTES) if self._in_opportunities else LOAD
        mbps = min(load * (link_mbps or most_mbps), most_mbps)
        if cost_ms is None:
            return Flow(round(self._lost_packets / loss) if loss else PACKETS_WITHOUT_LOSS, SMALL_BYTES, mbps)
        # Nothing can be told of a packet that waits for another. It waits for none with the probability 1/e, if one is
        # lost on average in the time that a repeat costs. What has waited goes together, and must fit into a queue.
        mbps = min(REPAIRED_LOAD * (link_mbps or most_mbps), SMALL_BYTES * 8 / 1e3 / (loss * cost_ms))
        most_packets = REPAIRED_S * mbps * 1e6 / 8 / SMALL_BYTES
        return Flow(round(min(self._lost_packets * math.e / loss, most_packets)), SMALL_BYTES, mbps)

    def _arrived(self, flow: Flow, arrived: dict[int, tuple[int, int]]) -> Direction:
        """What the arrivals of `flow` say of its direction, in the order in which they came."""
        lost = [number for number in range(flow.packets) if number not in arrived]
        cost_ms = self._network.retransmit_ms
        return Direction(
            flow.packets,
            len(lost),
            lost_numbers=tuple(lost[:LOST_NUMBERS]),
            repairs=None if cost_ms is None else repairs(arrived, cost_ms),
        )

    def _overloaded(self, direction: int, without_load: Direction) -> Direction:
        """`without_load` with the rate, and how much waited in the queue, when there was more than the link carries."""
        network = self._network
        mbps = (network.up_mbps, network.down_mbps)[direction]
        trace = (network.up_trace, network.down_trace)[direction]
        if mbps is None or network.retransmit_ms is not None or (trace and self._in_opportunities):
            # Packets that waited for a repeat go together: they show neither rate nor queue. And when Mahimahi began a
            # trace is not known.
            return without_load
        seconds = max(TRACE_S if trace else OVERLOAD_S, 3 * (network.queue_ms or 0) / 1e3)
        offered_mbps = mbps * (TRACE_OVERLOAD if trace else OVERLOAD)
        queue_bytes = (network.up_queue_bytes, network.down_queue_bytes)[direction] or 0
        size_bytes = LARGE_BYTES if trace or self._in_opportunities else probe_bytes(queue_bytes, offered_mbps)
        packets = round(seconds * offered_mbps * 1e6 / 8 / size_bytes)
        arrived = self._sent(direction, Flow(packets, size_bytes, offered_mbps))
        times_ns = sorted(at for _, at in arrived.values())
        if trace:
            rate_mbps = (len(times_ns) - 1) * LARGE_BYTES * 8e3 / (times_ns[-1] - times_ns[0])
            return replace(without_load, mbps=rate_mbps, trace_mbps=trace_mbps(Path(trace), times_ns[0], times_ns[-1]))
        gaps_ns = [after - before for before, after in itertools.pairwise(times_ns)]
        rate_mbps = size_bytes * 8e3 / statistics.median(gaps_ns)
        # The first found the link idle; in the second half the queue is as full as whole packets can make it.
        one_way_ns = [arrived[number][1] - arrived[number][0] for number in sorted(arrived)]
        waited_ns = statistics.median(one_way_ns[len(one_way_ns) // 2 :]) - min(one_way_ns)
        # The link never rests from the first packet to the last. What is lost on the way down has passed it before.
        passed = len(gaps_ns) / (1 - network.down_loss if direction else 1)
        mean_mbps = passed * size_bytes * 8e3 / (times_ns[-1] - times_ns[0])
        if self._in_opportunities:
            return replace(without_load, queue_bytes=waited_ns * mean_mbps / 8e3, mean_mbps=mean_mbps)
        waiting_bytes = waited_ns * rate_mbps / 8e3
        return replace(without_load, mbps=rate_mbps, queue_bytes=waiting_bytes, mean_mbps=mean_mbps)

    def _sent(self, direction: int, flow: Flow) -> dict[int, tuple[int, int]]:
        """Send `flow` up (0) or down (1); returns what arrived."""
        if direction:
            self._ask_peer(flow)
            time.sleep(self._drain_s)
            return self._arrivals.take()
        send(self._end, self._server, flow)
        time.sleep(self._drain_s)
        return self._ask_peer()

    def _ask_peer(self, flow: Flow | None = None) -> dict[int, tuple[int, int]]:
        """Let the peer send `flow`, if any; returns what has arrived there, as `Arrivals.take` has it."""
        self._control.sendall(json.dumps(flow and asdict(flow)).encode() + b"\n")
        return {int(number): (sent, at) for number, (sent, at) in json.loads(self._answers.readline()).items()}


def probe_bytes(queue_bytes: int, mbps: float) -> int:
    """The size of the packets that fill a queue of `queue_bytes` at `mbps`: the smaller, the finer it is measured."""
    keeping_up_bytes = math.ceil(mbps * 1e6 / 8 / OVERLOAD_PACKETS_PER_S)
    return min(LARGE_BYTES, max(queue_bytes // QUEUE_PACKETS, keeping_up_bytes, SMALL_BYTES))


def repairs(arrived: Mapping[int, tuple[int, int]], cost_ms: float) -> Repairs:
    """How a link repeated what it lost of the packets that arrived: number → (time sent, time it arrived), in ns.

    They are in the order in which they came; a try in vain costs `cost_ms`. Of a packet that waits for another it
    cannot be told whether it was lost itself. Those that wait for none are a sample of all: whether one does has
    nothing to do with whether it is lost.
    """
    one_way_ns = [arrived[number][1] - arrived[number][0] for number in sorted(arrived)]
    least_ns = min(one_way_ns, default=0)
    late_ms = [(span_ns - least_ns) / 1e6 for span_ns in one_way_ns]
    free_ms = [ms for before, ms in itertools.pairwise(late_ms) if before < FREE_SHARE * cost_ms]
    repeated_ms = [ms for ms in free_ms if ms > LATE_SHARE * cost_ms]
    median_ms = statistics.median(repeated_ms) if repeated_ms else None
    return Repairs(len(free_ms), len(repeated_ms), median_ms, in_order=[*arrived] == sorted(arrived))


def trace_mbps(trace: Path, begin_ns: int, end_ns: int) -> float:
    """What a link with this Mahimahi `trace` lets through between two instants of the monotonic clock, in Mbit/s.

    The trace began with the shell, and is repeated with its last time as period.
    """
    at_ms = [int(line) for line in read_trace(trace)]
    started_ns = _shell_started_ns()

    def lines_until(instant_ns: int) -> int:
        rounds, within_ms = divmod((instant_ns - started_ns) / 1e6, at_ms[-1])
        return int(rounds) * len(at_ms) + bisect.bisect_right(at_ms, within_ms)

    # The shell counts a header with each packet, as Mahimahi does.
    useful_bytes = TRACE_LINE_BYTES * LARGE_BYTES / (LARGE_BYTES + HEADER_BYTES)
    return (lines_until(end_ns) - lines_until(begin_ns)) * useful_bytes * 8e3 / (end_ns - begin_ns)


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
