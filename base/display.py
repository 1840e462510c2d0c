"""A private X server for one browser."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from base.jail import Jail, jailed
from base.places import tool
from base.processes import running

# Where the X server has its keyboard's map compiled to (Debian's setting), if it may write there.
KEYBOARD_MAPS = Path("/var/lib/xkb")


# Its sockets' folder is its own, so that no other server has this number.
DISPLAY = 0


@contextmanager
def x_server(screen: str, log: Path, jail: Jail | None = None) -> Iterator[Callable[[], None]]:
    """An X server with one `screen` (WIDTHxHEIGHTxDEPTH), DISPLAY; yields a function that waits until it takes clients.

    Its output is appended to `log`. It runs in `jail`, in which it must be able to write KEYBOARD_MAPS and a folder of
    sockets of its own; without a jail, use it where /tmp/.X11-unix is private. So it needs no lock file in the shared
    /tmp, which would outlive a kill. Raises EyelevelError when it ends by itself; the function raises it when the
    server does not start.
    """
    # On its standard output it says when it accepts clients. It listens in the private folder alone: not on the
    # abstract socket ("local"), which everybody in the same network could connect to, nor over TCP.
    command: list[str | Path] = [tool("Xvfb"), f":{DISPLAY}", "-displayfd", "1", "-nolock"]
    command += ["-nolisten", "tcp", "-nolisten", "local", "-screen", "0", screen]
    if jail:
        command = jailed(jail, command)
    with running("Xvfb", command, log, stdout=subprocess.PIPE) as daemon:

        def await_clients() -> None:
            daemon.first_line()

        yield await_clients
