"""Finds leftovers of a test session: processes, control groups, mounts and temporary files.

Other programs run on the machine, too. So every process of a session inherits a mark in its environment and the
session's temporary folder; anything without mark or folder is ignored.

As a program (`python -m support.leaks PID FOLDER`), this module waits until the session, the process PID, ends in any
way, and removes its leftovers.
"""

import os
import select
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from base.errors import EyelevelError
from measure.host import idle_priority, quota

# Processes that belong to the session, not to a test: its guards, and its browser.
OF_SESSION: set[int] = set()
# The variable with the mark: the temporary folder of the process's session, or of its worker.
MARK = "EYELEVEL_TEST_SESSION"

# The first letters of the names of control groups that tests make for themselves.
GROUPS = "eyelevel-tests-"

# How long a process may take to end after it was asked to.
END_TIMEOUT_S = 5.0


def own_groups() -> str:
    """The first letters of the names of control groups of one test alone.

    A process that has found idle priority to hold remembers that for each such beginning of names. So with this one, it
    is tried anew.
    """
    return f"{GROUPS}{uuid.uuid4()}-"


def groups_folder() -> Path:
    """The control group in which this process can make others. Raises EyelevelError, OSError."""
    place = quota.hierarchy(Path("/proc/self/mountinfo").read_text(), Path("/proc/self/cgroup").read_text())
    return place.parent


def processes_marked(mark: str, timeout_s: float = END_TIMEOUT_S) -> list[str]:
    """The processes with `mark` in their environment that do not end within `timeout_s`, described for a person."""
    deadline = time.monotonic() + timeout_s
    described = [(pid, _described(pid)) for pid in pids_marked(mark)]
    return [description for pid, description in described if description and not _ends(pid, deadline)]


def end_marked(mark: str) -> None:
    """End the processes with `mark` in their environment, and those that they start meanwhile; wait until they have
    ended."""
    while pids := [*pids_marked(mark)]:
        deadline = time.monotonic() + END_TIMEOUT_S
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if not all(_ends(pid, deadline) for pid in pids):
            return


def pids_marked(mark: str) -> Iterator[int]:
    """The processes, except this one, whose environment has `mark` ("NAME=folder"), or NAME with a folder inside it."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            variables = (entry / "environ").read_bytes().decode(errors="surrogateescape").split("\0")
        except OSError:  # it has ended, or this process may not read it
            continue
        if any(variable == mark or variable.startswith(f"{mark}/") for variable in variables):
            yield int(entry.name)


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


def remove_session(folder: Path) -> None:
    """Remove everything that is left of the session `folder`. A namespace ends with the processes in it."""
    end_marked(f"{MARK}={folder}")
    for point in sorted(mount_points(), reverse=True):
        if Path(point).is_relative_to(folder):
            subprocess.run(["umount", "--lazy", point], check=True)  # otherwise its files would be removed
    with suppress(EyelevelError, OSError):  # there may be no control groups
        for prefix in (GROUPS, quota.PREFIX, idle_priority.PREFIX):
            quota.remove_abandoned(groups_folder(), prefix)
    shutil.rmtree(folder, ignore_errors=True)


def guard(folder: Path) -> "subprocess.Popen[bytes]":
    """Start a process that removes the leftovers of the session `folder` when this process has ended, even if it is
    killed."""
    command = [sys.executable, "-m", __spec__.name, str(os.getpid()), str(folder)]
    environment = {name: value for name, value in os.environ.items() if name != MARK}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    process = subprocess.Popen(command, env=environment, start_new_session=True)
    OF_SESSION.add(process.pid)
    return process


def main(pid: int, folder: Path) -> None:
    """Wait for the end of the process `pid`, then remove the leftovers of its session."""
    with suppress(ProcessLookupError):
        descriptor = os.pidfd_open(pid)
        if os.getppid() == pid:
            select.select([descriptor], [], [])
    remove_session(folder)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
