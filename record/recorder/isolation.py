"""The network of a recording's browser, in which nobody else is and from which one socket leads out."""

import ctypes
import os
import socket

from base.errors import EyelevelError
from base.places import tool
from base.processes import run_program

# Python offers this from 3.12 on (unshare(2), linux/sched.h).
_LIBC = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWNET = 0x40000000


def enter_private_network() -> None:
    """Take this process, with all that it starts from now on, into a fresh network with a loopback device only.

    Processes that it has started before stay where they are. Raises EyelevelError.
    """
    if _LIBC.unshare(_CLONE_NEWNET):
        reason = os.strerror(ctypes.get_errno())
        raise EyelevelError(f"the browser's network could not be made: {reason}")
    run_program([tool("ip"), "link", "set", "lo", "up"], "the browser's network could not be set up")


def hand_over_listener(to: socket.socket) -> None:
    """Make a listening socket in this process's network and send it over `to`; its owner may be in another network."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        socket.send_fds(to, [b"\0"], [listener.fileno()])
