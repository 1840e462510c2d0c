"""Sets options on the sockets of a server program from outside, since the program itself cannot set them.

With `pidfd_getfd(2)`, a process can get copies of the descriptors of processes that it may trace. Accepted sockets
inherit the options of the listening socket.
"""

import ctypes
import os
import socket
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from base.errors import EyelevelError
from servers.nginx.server import SO_MAX_PACING_RATE, UNLIMITED_PACING_BYTES_PER_S

SO_IP_TRANSPARENT = 19  # linux/in.h; Python has no name for it
SYS_PIDFD_GETFD = 438  # on x86-64; Python has no name for it
LIBC = ctypes.CDLL(None, use_errno=True)


def pace_listeners(jailer: int, endpoints: Iterable[tuple[str, int]]) -> None:
    """Pace the data sent on connections to `endpoints`; a descendant of process `jailer` has their listening sockets.

    Linux uses TCP's own pacing for a socket with a maximum pacing rate (`servers.nginx.server`). Raises EyelevelError
    when an endpoint has no such socket, or the kernel refuses the option.
    """
    rate = UNLIMITED_PACING_BYTES_PER_S.to_bytes(8, "little")
    if lacking := set(endpoints) - _set(jailer, socket.SOCK_STREAM, socket.SOL_SOCKET, SO_MAX_PACING_RATE, rate):
        raise EyelevelError("TCP cannot be paced at {}:{}".format(*min(lacking)))


def make_transparent(jailer: int, endpoints: Iterable[tuple[str, int]], kind: socket.SocketKind) -> None:
    """Let the sockets of this `kind` at `endpoints`, which belong to a descendant of process `jailer`, answer from
    their addresses although these are not this namespace's (ip(7), IP_TRANSPARENT). Raises EyelevelError like
    `pace_listeners`."""
    if lacking := set(endpoints) - _set(jailer, kind, socket.IPPROTO_IP, SO_IP_TRANSPARENT, (1).to_bytes(4, "little")):
        raise EyelevelError("what is sent from {}:{} cannot leave".format(*min(lacking)))


def listening(kind: socket.SocketKind) -> set[tuple[str, int]]:
    """The IPv4 addresses and ports in this network namespace at which sockets of this `kind` wait for clients."""
    # proc_net_tcp(5): the states are LISTEN, and that of UDP without a peer.
    name, state = ("tcp", "0A") if kind == socket.SOCK_STREAM else ("udp", "07")
    lines = (line.split() for line in Path(f"/proc/thread-self/net/{name}").read_text().splitlines()[1:])
    places = (fields[1].split(":") for fields in lines if fields[3] == state)
    return {(socket.inet_ntoa(bytes.fromhex(address)[::-1]), int(port, 16)) for address, port in places}


def _set(jailer: int, kind: socket.SocketKind, level: int, option: int, value: bytes) -> set[tuple[str, int]]:
    """Set an option on all sockets of this `kind` at which descendants of `jailer` serve; returns their addresses and
    ports."""
    places = set()
    for process in _descendants(jailer):
        for one in _serving(process, kind):
            with one:
                one.setsockopt(level, option, value)
                if one.getsockopt(level, option, len(value)) == value:
                    places.add(one.getsockname())
    return places


def _descendants(process: int) -> Iterator[int]:
    yield process
    for thread in Path(f"/proc/{process}/task").iterdir():
        for child in (thread / "children").read_text().split():
            yield from _descendants(int(child))


def _serving(process: int, kind: socket.SocketKind) -> Iterator[socket.socket]:
    """The IPv4 sockets of this `kind` at which `process` serves, as sockets of this process."""
    descriptor = os.pidfd_open(process)
    try:
        for link in Path(f"/proc/{process}/fd").iterdir():
            with suppress(FileNotFoundError):  # closed meanwhile
                if not str(link.readlink()).startswith("socket:"):
                    continue
            ours = LIBC.syscall(SYS_PIDFD_GETFD, descriptor, int(link.name), 0)
            if ours < 0:
                number = ctypes.get_errno()
                raise EyelevelError(f"cannot get the sockets of the server: {os.strerror(number)}")
            one = socket.socket(fileno=ours)
            of_kind = one.family == socket.AF_INET and one.type == kind
            if of_kind and (kind == socket.SOCK_DGRAM or one.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)):
                yield one
            else:
                one.close()
    finally:
        os.close(descriptor)
