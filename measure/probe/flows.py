"""Even flows of datagrams, and their arrivals: the common part of all probes.

Each datagram has a kind, a number and the time at which it was sent. Arrival times are the kernel's.
"""

import math
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

HEADER = struct.Struct("!cIQ")  # kind, number, time sent in ns
ECHO, DATA = b"e", b"d"
IP_UDP_BYTES = 28

SMALL_BYTES = IP_UDP_BYTES + HEADER.size
LARGE_BYTES = 1428
# A queue is filled with packets that are so small that it holds QUEUE_PACKETS of them. But a program can handle only
# OVERLOAD_PACKETS_PER_S, so packets may have to be larger, up to LARGE_BYTES.
QUEUE_PACKETS, OVERLOAD_PACKETS_PER_S = 40, 5000
SO_TIMESTAMPNS, SO_RCVBUFFORCE = 35, 33
BUFFER_BYTES = 1 << 22
TIMESPEC = struct.Struct("qq")
# The ECN codepoints of a packet that may be marked, and of one that was marked (RFC 3168).
ECT, CE = 0b10, 0b11

# A flow that fills a queue has this many times the link's rate.
OVERLOAD = 1.5
# On links faster than FAST_MBPS, the factor is FAST_OVERLOAD, since a program cannot send 1.5 times as much.
FAST_MBPS, FAST_OVERLOAD = 100.0, 1.15
# After every `SPARSE_EVERY` packets of a managed flow, one packet of a second, sparse flow is sent. The numbers of its
# packets begin at `SPARSE`.
SPARSE_EVERY, SPARSE = 25, 1 << 30
# A sender that was kept from running for this long restarts its schedule instead of sending a burst.
LATE_S = 0.02

# Number → (time sent, time it arrived), in ns.
Times = Mapping[int, tuple[int, int]]


@dataclass(frozen=True)
class Flow:
    """Datagrams to send: their number, the size of their IP packets in bytes, and their rate.

    `managed`: each may be marked, and one small datagram of a sparse flow is sent for every `SPARSE_EVERY` of them.
    """

    packets: int
    size_bytes: int
    mbps: float
    managed: bool = False


class Arrivals:
    """The datagrams that arrived at a socket: number → (time sent, time of arrival), in ns. With `echo`, sends echoes
    back.

    `marked` are the numbers of datagrams that met congestion on the way (RFC 3168). `admits` decides by content and
    sender; datagrams that it refuses are ignored.
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
        except PermissionError:  # only root may exceed net.core.rmem_max
            end.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
        self._to_monotonic_ns = _to_monotonic_ns()
        self._is_over = False
        self._receiver = threading.Thread(target=self._receive, daemon=True)
        self._receiver.start()

    def close(self) -> None:
        """Close the socket once its reader has stopped, since the number of a closed descriptor may be reused at
        once."""
        self._is_over = True
        # The socket is not connected, so `shutdown` fails, but only after it has woken the reader.
        with suppress(OSError):
            self._end.shutdown(socket.SHUT_RD)
        self._receiver.join()
        self._end.close()

    def __len__(self) -> int:
        return len(self._arrived)

    def __contains__(self, number: int) -> bool:
        return number in self._arrived

    def take(self) -> dict[int, tuple[int, int]]:
        """All arrivals since the last call."""
        # The kernel's timestamps are of the wall clock, which may be set between flows, but hardly during one.
        self._to_monotonic_ns = _to_monotonic_ns()
        arrived, self._arrived = self._arrived, {}
        return arrived

    def take_marked(self) -> list[int]:
        """The numbers of datagrams that were marked since the last call."""
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
                # An echo that cannot be sent is lost, like one lost on the way; those after it are not.
                with suppress(OSError):
                    self._end.sendto(data, address)
                continue
            said = {what: value for _, what, value in ancillary}
            # For IPv6, the kernel reports the codepoint in another way; no probe over IPv6 needs it.
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
    """Send `flow` evenly; if it is managed, send the sparse flow from the socket `beside`.

    Numbers begin at `first`; each datagram of the flow contains `token`.
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
    """The monotonic clock minus the wall clock, from the fastest of several readings."""

    def reading_ns() -> tuple[int, int]:
        before_ns, wall_ns, after_ns = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        return after_ns - before_ns, (before_ns + after_ns) // 2 - wall_ns

    return min(reading_ns() for _ in range(5))[1]


def overload(mbps: float) -> float:
    """The factor by which a flow that fills a queue exceeds the link's rate, `mbps`."""
    return OVERLOAD if mbps <= FAST_MBPS else FAST_OVERLOAD


def probe_bytes(queue_bytes: int, mbps: float) -> int:
    """The size of packets that fill a queue of `queue_bytes` at `mbps`; smaller packets measure it more finely."""
    keeping_up_bytes = math.ceil(mbps * 1e6 / 8 / OVERLOAD_PACKETS_PER_S)
    return min(LARGE_BYTES, max(queue_bytes // QUEUE_PACKETS, keeping_up_bytes, SMALL_BYTES))


def lost_runs(packets: int, arrived: Times) -> Iterator[range]:
    """The numbers, from 0, of the packets that did not arrive, as ranges of consecutive ones."""
    before = -1
    for number in [*sorted(arrived), packets]:
        if number > before + 1:
            yield range(before + 1, number)
        before = number
