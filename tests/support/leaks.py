"""What a session of tests leaves behind: processes, mounts and temporary files.

Other things run on the machine, too. So every process of a session inherits a mark in its environment and a temporary
folder of the session, and only what bears these is judged.
"""

import os
import select
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

MARK = "EYELEVEL_TEST_SESSION"

# A process that has been told to end may need a moment to.
END_TIMEOUT_S = 5.0


def processes_marked(mark: str, timeout_s: float = END_TIMEOUT_S) -> list[str]:
    """The processes with `mark` in their environment that do not end within `timeout_s`, as a person knows them."""
    deadline = time.monotonic() + timeout_s
    described = [(pid, _described(pid)) for pid in pids_marked(mark)]
    return [description for pid, description in described if description and not _ends(pid, deadline)]


def end_marked(mark: str) -> None:
    """End the processes with `mark` in their environment at once."""
    for pid in pids_marked(mark):
        if pid != os.getpid():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def pids_marked(mark: str) -> Iterator[int]:
    """The processes with `mark` in their environment."""
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark.encode() in (entry / "environ").read_bytes().split(b"\0"):
                yield int(entry.name)
        except OSError:  # it has ended meanwhile, or is not ours to look at
            continue


def _described(pid: int) -> str:
    try:
        return f"{pid} ({Path(f'/proc/{pid}/cmdline').read_bytes().replace(bytes(1), b' ').decode(errors='replace')})"
    except OSError:
        return ""


def _ends(pid: int, deadline: float) -> bool:
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], max(0, deadline - time.monotonic()))[0])
    finally:
        os.close(descriptor)


def mount_points() -> set[str]:
    """Where something is mounted in this mount namespace."""
    return {line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()}
