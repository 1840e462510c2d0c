"""The proxy's program: mitmdump, which connects only to addresses that its page may reach.

mitmproxy's own Python runs it, with the project on its path. So this module, and all that it imports from the project,
needs only the standard library and mitmproxy; `tests/record/test_recorder.py` checks it.
"""

import asyncio
import resource
import socket
import sys
from typing import Any

from mitmproxy.tools.main import mitmdump  # type: ignore[import-not-found]

from record.recorder.addresses import Guard
from record.recorder.limits import PROXY_BYTES
from record.recorder.proxy_settings import ProxySettings

# Offsets in struct tcp_info (linux/tcp.h): tcpi_rtt (in µs), which is the handshake's round trip as long as nothing
# else was sent, and tcpi_total_retrans.
TCP_INFO_BYTES, RTT_AT, REPEATS_AT = 104, 68, 100


class GuardedLoop(asyncio.SelectorEventLoop):
    """An event loop with a guard that permits or refuses connections.

    The guard sees the actual address, whichever name, redirect or notation led to it. `handshakes_ms`: address and port
    of our end of a connection → the duration of its handshake.
    """

    def __init__(self, guard: Guard) -> None:
        super().__init__()
        self._guard = guard
        self.handshakes_ms: dict[tuple[str, int], float] = {}

    async def sock_connect(self, sock: socket.socket, address: Any) -> None:
        """Connect `sock`; every TCP connection is made here. Raises OSError, also when the guard refuses."""
        if refusal := self._guard.refusal(address[0]):
            raise PermissionError(refusal)
        await super().sock_connect(sock, address)
        self._guard.connected(address[0])
        if (time_ms := handshake_ms(sock)) is not None:
            self.handshakes_ms[sock.getsockname()[:2]] = time_ms


def handshake_ms(sock: socket.socket) -> float | None:
    """The duration of the handshake of `sock`, a TCP connection that was just made, as the kernel measured it from its
    SYN to the answer. None if the SYN was repeated, since it is then unknown which one was answered."""
    information = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, TCP_INFO_BYTES)
    rtt_us, repeats = (int.from_bytes(information[at : at + 4], sys.byteorder) for at in (RTT_AT, REPEATS_AT))
    return rtt_us / 1000 if rtt_us and not repeats else None


class GuardedLoops(asyncio.DefaultEventLoopPolicy):
    """Makes event loops that share one guard."""

    def __init__(self) -> None:
        super().__init__()
        self._guard = Guard(ProxySettings.of_environment().address_policy)

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        """Make an event loop (see `AbstractEventLoopPolicy`)."""
        return GuardedLoop(self._guard)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_DATA, (PROXY_BYTES, PROXY_BYTES))
    asyncio.set_event_loop_policy(GuardedLoops())
    sys.exit(mitmdump())
