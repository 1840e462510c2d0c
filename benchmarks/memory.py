"""The memory of processes."""

import psutil


def pss_bytes(process: psutil.Process) -> int:
    """Its proportional set size, which counts what processes share once (proc(5)): sums are what they take.

    Nothing, when it has ended.
    """
    try:
        return int(process.memory_full_info().pss)
    except psutil.NoSuchProcess:
        return 0
