"""A private X server for one browser."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from base.jail import Jail, jailed
from base.places import tool
from base.processes import running

# Where the X server has its keyboard's map compiled to (Debian's setting), if it may write there.
KEYBOARD_MAPS = Path("/var/lib/xkb")


@contextmanager
def x_server(screen: str, log: Path, jail: Jail | None = None) -> Iterator[int]:
    """An X server with one `screen` (WIDTHxHEIGHTxDEPTH); yields its display's number once it accepts clients.

    Its output is appended to `log`. It runs in `jail`, in which it must be able to write KEYBOARD_MAPS and a folder of
    sockets of its own; without a jail, use it where /tmp/.X11-unix is private. So it needs no lock file in the shared
    /tmp, which would outlive a kill. Raises EyelevelError when it does not start, or ends by itself.
    """
    # Its standard output has the display's number and nothing else. It listens in the private folder alone: not on the
    # abstract socket ("local"), which everybody in the same network could connect to, nor over TCP.
    command: list[str | Path] = [tool("Xvfb"), "-displayfd", "1", "-nolock", "-nolisten", "tcp", "-nolisten", "local"]
    command += ["-screen", "0", screen]
    if jail:
        command = jailed(jail, command)
    with running("Xvfb", command, log, stdout=subprocess.PIPE) as daemon:
        yield int(daemon.first_line())
