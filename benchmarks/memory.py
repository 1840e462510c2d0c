"""The memory of processes."""

import psutil


def pss_bytes(process: psutil.Process) -> int:
    """The proportional set size of a process: shared memory is divided among its users (proc(5)), so sums are
    meaningful.

    It is 0 when the process has ended.
    """
    try:
        return int(process.memory_full_info().pss)
    except psutil.NoSuchProcess:
        return 0
