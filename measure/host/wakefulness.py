"""Keeps processors awake while something is measured.

A processor with nothing to do goes to sleep, and takes time to wake. On a virtual machine, it is given to another
tenant meanwhile, and comes back late, with cold caches. On such a machine, processes that were limited to 13 % of the
time did 8 to 13 % of the work of a whole processor; with processors kept awake, they did 12.5 % (docs/programs.md). A
program can ask the kernel to keep processors awake (kernel documentation, power/pm_qos_interface.rst): it writes into a
file how many microseconds waking may take, and keeps that file open.
"""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from base.errors import EyelevelError

# Writable by root, and by users to whom it was granted (setup/grant awake); missing in some containers.
LATENCY = Path("/dev/cpu_dma_latency")
AT_ONCE = struct.pack("=i", 0)
AWAKE, ASLEEP = "awake", "asleep"


def idle_processors(latency: Path = LATENCY) -> str:
    """The state of idle processors while something is measured here: AWAKE, or ASLEEP if they cannot be kept awake
    through the kernel's file `latency`."""
    # Some containers forbid opening the file, regardless of its mode.
    try:
        with latency.open("r+b", buffering=0):
            return AWAKE
    except OSError:
        return ASLEEP


@contextmanager
def processors_awake(latency: Path = LATENCY) -> Iterator[None]:
    """Keep the processors awake while the context lasts, if `idle_processors` says AWAKE. Raises EyelevelError when the
    kernel does not keep them awake."""
    if idle_processors(latency) == ASLEEP:
        yield
        return
    # The shortest time that any process asks for applies; that time is read back.
    with latency.open("r+b", buffering=0) as file:
        file.write(AT_ONCE)
        if file.read(len(AT_ONCE)) != AT_ONCE:
            raise EyelevelError(f"{latency} does not keep the processors awake, though it was written")
        yield
