"""A private X server for one browser."""

import os
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
    ready, ready_end = os.pipe()
    command: list[str | Path] = [tool("Xvfb"), "-displayfd", str(ready_end), "-nolock"]
    command += ["-nolisten", "tcp", "-screen", "0", screen]
    with running("Xvfb", command, log, pass_fds=(ready_end,)) as daemon:
        os.close(ready_end)
        with os.fdopen(ready) as answer:
            number = answer.readline().strip()
        if not number:
            daemon.process.wait()
            raise daemon.failure()
        yield int(number)
