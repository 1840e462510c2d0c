"""A private X server for one browser."""

import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from base.jail import Jail, jailed
from base.places import tool
from base.processes import running

# The folder where the X server compiles the keyboard map (Debian's setting), if it may write there.
KEYBOARD_MAPS = Path("/var/lib/xkb")


# Each server has its own folder of sockets, so the number is always free.
DISPLAY = 0


@contextmanager
def x_server(screen: str, log: Path, jail: Jail | None = None) -> Iterator[Callable[[], None]]:
    """Run an X server DISPLAY with one `screen` (WIDTHxHEIGHTxDEPTH); yields a function that waits until it accepts
    clients.

    Its output is appended to `log`. It runs in `jail`, where it must be able to write KEYBOARD_MAPS and its own folder
    of sockets. Without a jail, use it only where /tmp/.X11-unix is private. Since its sockets are private, the server
    makes no lock file in the shared /tmp; such a file would remain when the server is killed. Raises EyelevelError when
    the server ends by itself; the yielded function raises it when the server does not start.
    """
    # Xvfb prints to standard output when it accepts clients. It listens only in the private folder: not on the abstract
    # socket ("local"), to which everybody in the same network namespace could connect, nor over TCP.
    command: list[str | Path] = [tool("Xvfb"), f":{DISPLAY}", "-displayfd", "1", "-nolock"]
    command += ["-nolisten", "tcp", "-nolisten", "local", "-screen", "0", screen]
    if jail:
        command = jailed(jail, command)
    with running("Xvfb", command, log, stdout=subprocess.PIPE) as daemon:

        def await_clients() -> None:
            daemon.first_line()

        yield await_clients
