"""A private X server for one browser."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from base.places import tool
from base.processes import running


@contextmanager
def x_server(screen: str, log: Path) -> Iterator[int]:
    """An X server with one `screen` (WIDTHxHEIGHTxDEPTH); yields its display's number once it accepts clients.

    Its output is appended to `log`. Use it where /tmp/.X11-unix is private: the X server then needs no lock file in the
    shared /tmp, which would outlive a kill. Raises EyelevelError when it does not start, or ends by itself.
    """
    # Its standard output has the display's number and nothing else.
    command: list[str | Path] = [tool("Xvfb"), "-displayfd", "1", "-nolock", "-nolisten", "tcp", "-screen", "0", screen]
    with running("Xvfb", command, log, stdout=subprocess.PIPE) as daemon:
        yield int(daemon.first_line())
