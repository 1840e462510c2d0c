"""X servers for single tests."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from base.places import tool


@contextmanager
def x_display(screen: str = "640x480x24") -> Iterator[str]:
    """An X server with a free display number while the block runs; yields the display's name."""
    command: list[str | Path] = [tool("Xvfb"), "-displayfd", "1", "-nolisten", "tcp", "-screen", "0", screen]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        try:
            assert server.stdout
            yield f":{server.stdout.readline().strip()}"
        finally:
            server.terminate()
