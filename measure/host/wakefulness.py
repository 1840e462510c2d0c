"""Processors that stay awake while something is measured.

A processor with nothing to do goes to sleep, and takes time to wake. On a virtual machine it is given to another tenant
meanwhile, and comes back late, with cold caches: processes that ran for 13 % of the time did from 8 to 13 % of a
processor's work, and with processors awake 12.5 % (docs/devices.md). A program may ask the kernel to keep them awake
(its documentation, power/pm_qos_interface.rst): for as long as it has a file open, into which it has written how many
microseconds waking may take.
"""

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from base.errors import EyelevelError

# Root can write it, and others where it was granted (setup/grant awake); it is not in every container.
LATENCY = Path("/dev/cpu_dma_latency")
AT_ONCE = struct.pack("=i", 0)
AWAKE, ASLEEP = "awake", "asleep"


def idle_processors(latency: Path = LATENCY) -> str:
    """The state of processors that have nothing to do while something is measured here: AWAKE, or ASLEEP where nobody
    can keep them awake, by the kernel's file `latency`."""
    # Some containers let nobody open it, whatever its mode says.
    try:
        with latency.open("r+b", buffering=0):
            return AWAKE
    except OSError:
        return ASLEEP


@contextmanager
def processors_awake(latency: Path = LATENCY) -> Iterator[None]:
    """Keep the processors awake while the block runs, where `idle_processors` says that they are. Raises EyelevelError
    when the kernel does not do it."""
    if idle_processors(latency) == ASLEEP:
        yield
        return
    # The shortest time that anybody asks for holds, and that is the one that can be read.
    with latency.open("r+b", buffering=0) as file:
        file.write(AT_ONCE)
        if file.read(len(AT_ONCE)) != AT_ONCE:
            raise EyelevelError(f"{latency} does not keep the processors awake, though it was written")
        yield
