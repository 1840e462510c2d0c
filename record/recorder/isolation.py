"""The network of a recording's browser: it has no other hosts, and only one socket leads out of it."""

import ctypes
import os
import socket

from base.errors import EyelevelError
from base.places import tool
from base.processes import run_program

# Python offers this from version 3.12 on (unshare(2), linux/sched.h).
_LIBC = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWNET = 0x40000000


def enter_private_network() -> None:
    """Move this process, and all that it starts from now on, into a fresh network with only a loopback device.

    Processes that it started earlier stay in the old network. Raises EyelevelError.
    """
    if _LIBC.unshare(_CLONE_NEWNET):
        reason = os.strerror(ctypes.get_errno())
        raise EyelevelError(f"the browser's network could not be made: {reason}")
    run_program([tool("ip"), "link", "set", "lo", "up"], "the browser's network could not be set up")


def hand_over_listener(to: socket.socket) -> None:
    """Create a listening socket in this process's network and send it over `to`, whose other end may be in another
    network."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        socket.send_fds(to, [b"\0"], [listener.fileno()])
