"""The kernel's files about a process, below /proc/PID."""

import os
from functools import partial

# How much of a file is read at once; most files are shorter.
BLOCK_BYTES = 1 << 14


def command_line(process: int) -> str:
    """The command line of `process`; empty if it has ended."""
    return kernel_file(process, "cmdline").replace(b"\0", b" ").decode(errors="replace")


def kernel_file(process: int, name: str) -> bytes:
    """The content of a file about `process`; empty if the process has ended."""
    # os.open: reading through Path takes four times as long.
    try:
        descriptor = os.open(f"/proc/{process}/{name}", os.O_RDONLY)
    except OSError:
        return b""
    try:
        return b"".join(iter(partial(os.read, descriptor, BLOCK_BYTES), b""))
    except OSError:
        return b""
    finally:
        os.close(descriptor)
