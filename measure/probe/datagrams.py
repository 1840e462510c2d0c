"""The datagrams that probe a path: flows of constant rate, marked with a secret token, over IPv4 or IPv6."""

import socket
import time
from dataclasses import dataclass
from typing import Any

from base.errors import EyelevelError
from measure.probe.flows import ECHO, HEADER, IP_UDP_BYTES, Arrivals, Flow, send

TOKEN_BYTES = 8
IPV6_UDP_BYTES = 48
# Upper limits for one flow, higher than any phase of a probe needs.
LONGEST_FLOW_S, MOST_MBPS = 30.0, 10_000.0
# linux/in.h, linux/in6.h: a datagram larger than the path's packets is refused, not fragmented.
IP_MTU_DISCOVER, IP_PMTUDISC_DO, IPV6_MTU_DISCOVER = 10, 2, 23
# After a flow's last datagram has come, datagrams that it has overtaken may still follow for this long (s).
OVERTAKEN_S = 0.1
LOOK_S = 0.01
# The longest time (s) to wait for packets that are still in queues.
LONGEST_SETTLING_S = 20.0

Times = dict[int, tuple[int, int]]


@dataclass(frozen=True)
class Numbers:
    """The numbers of the datagrams of one flow; no other flow of the probe uses them."""

    first: int
    packets: int

    @property
    def last(self) -> int:
        return self.first + self.packets - 1


class End:
    """One end of a path: its socket for datagrams, its peer, and the datagrams that arrived.

    It accepts only datagrams with this probe's token from the peer's address. With `echo`, it sends datagrams of the
    kind ECHO back.
    """

    def __init__(self, family: int, address: Any, *, echo: bool) -> None:
        """Raises OSError when `address` is in use."""
        self._socket = socket.socket(family, socket.SOCK_DGRAM)
        is_v6 = family == socket.AF_INET6
        if is_v6:
            self._socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        where = (socket.IPPROTO_IPV6, IPV6_MTU_DISCOVER) if is_v6 else (socket.IPPROTO_IP, IP_MTU_DISCOVER)
        self._socket.setsockopt(*where, IP_PMTUDISC_DO)
        self._socket.bind(address)
        self.ip_udp_bytes = IPV6_UDP_BYTES if is_v6 else IP_UDP_BYTES
        self.least_bytes = self.ip_udp_bytes + HEADER.size + TOKEN_BYTES
        self._token = b""
        self._other = ""
        self._arrivals = Arrivals(self._socket, echo=echo, admits=self._admits)

    def begin(self, token: bytes, other: str) -> None:
        """From now on, accept only datagrams with this token from the address `other`."""
        self._arrivals.take()
        self._arrivals.sender = None
        self._token, self._other = token, other

    def end(self) -> None:
        """Accept no more datagrams."""
        self._token = b""

    def close(self) -> None:
        """Close the socket."""
        self._arrivals.close()

    def _admits(self, data: bytes, sender: Any) -> bool:
        token = self._token
        return bool(token) and sender[0] == self._other and data[HEADER.size : HEADER.size + len(token)] == token

    @property
    def sender(self) -> Any:
        """The sender of the last echo that was sent back; None before the first."""
        return self._arrivals.sender

    def check(self, flow: Flow, numbers: Numbers, most_bytes: int, largest_bytes: int) -> None:
        """Raises EyelevelError unless `flow` is one that a probe sends, within the agreed limits."""
        is_sound = self.least_bytes <= flow.size_bytes <= largest_bytes and 0 < flow.mbps <= MOST_MBPS
        if not is_sound or flow.managed or flow.packets != numbers.packets or not 0 <= numbers.first < 1 << 31:
            raise EyelevelError(f"{flow} is not a flow of a probe")
        size_bytes = flow.packets * flow.size_bytes
        if not 0 < size_bytes <= most_bytes or size_bytes * 8 / flow.mbps / 1e6 > LONGEST_FLOW_S:
            raise EyelevelError(f"{flow} is more than was agreed on")

    def sent(self, flow: Flow, first: int, address: Any) -> float:
        """Send `flow` to `address`, numbered from `first`; returns the actual rate in Mbit/s.

        Raises EyelevelError.
        """
        begin_s = time.monotonic()
        try:
            send(
                *(self._socket, self._socket, address, flow),
                token=self._token,
                first=first,
                ip_udp_bytes=self.ip_udp_bytes,
            )
        except OSError as error:
            raise EyelevelError(
                f"datagrams of {flow.size_bytes} bytes cannot be sent: {error.strerror}; does a tunnel on the path "
                "have shorter packets?"
            ) from None
        return flow.packets * flow.size_bytes * 8 / (time.monotonic() - begin_s) / 1e6

    def send_echo(self, number: int, address: Any) -> None:
        """Send one datagram, which the other end sends back. Raises EyelevelError."""
        try:
            self._socket.sendto(HEADER.pack(ECHO, number, time.monotonic_ns()) + self._token, address)
        except OSError as error:
            raise EyelevelError(f"no datagram can be sent to {address[0]}: {error.strerror}; does UDP pass?") from None

    def arrived(self, numbers: Numbers, quiet_s: float) -> Times:
        """The arrivals of `numbers`, once the last has come, or none has come for `quiet_s`."""
        begin_s = at_s = time.monotonic()
        count = len(self._arrivals)
        while (now_s := time.monotonic()) - begin_s < LONGEST_SETTLING_S:
            if now_s - at_s >= (OVERTAKEN_S if numbers.last in self._arrivals else quiet_s):
                break
            time.sleep(LOOK_S)
            if len(self._arrivals) > count:
                count, at_s = len(self._arrivals), time.monotonic()
        of_flow = range(numbers.first, numbers.first + numbers.packets)
        return {number: times for number, times in self._arrivals.take().items() if number in of_flow}
