"""TCP's own pacing for a program that cannot ask for it: of its listening sockets, from outside.

Linux gives pacing to a socket that has a maximum pacing rate, and accepted sockets inherit it (`servers.nginx.server`).
The kernel hands a process the descriptors of those that it may trace: `pidfd_getfd(2)`.
"""

import ctypes
import os
import socket
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from base.errors import EyelevelError
from servers.nginx.server import SO_MAX_PACING_RATE, UNLIMITED_PACING_BYTES_PER_S

SYS_PIDFD_GETFD = 438  # of x86-64; Python has no name for it
LIBC = ctypes.CDLL(None, use_errno=True)


def pace_listeners(jailer: int, endpoints: Iterable[tuple[str, int]]) -> None:
    """Pace what connections to `endpoints` will send, whose listening sockets a descendant of process `jailer` has.

    Raises EyelevelError when there is an endpoint without one, or the kernel does not take it.
    """
    rate = UNLIMITED_PACING_BYTES_PER_S.to_bytes(8, "little")
    paced = set()
    for process in _descendants(jailer):
        for listener in _listeners(process):
            with listener:
                listener.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, rate)
                if listener.getsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, 8) == rate:
                    paced.add(listener.getsockname())
    if lacking := set(endpoints) - paced:
        raise EyelevelError("TCP cannot be paced at {}:{}".format(*min(lacking)))


def _descendants(process: int) -> Iterator[int]:
    yield process
    for thread in Path(f"/proc/{process}/task").iterdir():
        for child in (thread / "children").read_text().split():
            yield from _descendants(int(child))


def _listeners(process: int) -> Iterator[socket.socket]:
    """The listening sockets of TCP that `process` has, as sockets of ours."""
    descriptor = os.pidfd_open(process)
    try:
        for link in Path(f"/proc/{process}/fd").iterdir():
            with suppress(FileNotFoundError):  # closed meanwhile
                if not str(link.readlink()).startswith("socket:"):
                    continue
            ours = LIBC.syscall(SYS_PIDFD_GETFD, descriptor, int(link.name), 0)
            if ours < 0:
                number = ctypes.get_errno()
                raise EyelevelError(f"the sockets of the server cannot be had: {os.strerror(number)}")
            one = socket.socket(fileno=ours)
            if one.family == socket.AF_INET and one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                yield one
            else:
                one.close()
    finally:
        os.close(descriptor)
