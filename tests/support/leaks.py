"""The remains of a session of tests: processes, control groups, mounts and temporary files.

Other things run on the machine, too. So every process of a session inherits a mark in its environment and a temporary
folder of the session, and only what bears these is judged.

Run as a program (`python -m support.leaks PID FOLDER`), it waits for the end of the session that is the process PID,
however that comes, and removes what is left of it.
"""

import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from base.errors import EyelevelError
from measure.host import idle_priority, quota

# The guards of this process: no test started them.
GUARDS: set[int] = set()
# Names the temporary folder of the session, or of its worker, that a process belongs to.
MARK = "EYELEVEL_TEST_SESSION"

# How the names of control groups begin that tests make for themselves.
GROUPS = "eyelevel-tests-"

# A process that was asked to end may need a moment to.
END_TIMEOUT_S = 5.0


def processes_marked(mark: str, timeout_s: float = END_TIMEOUT_S) -> list[str]:
    """The processes with `mark` in their environment that do not end within `timeout_s`, as a person knows them."""
    deadline = time.monotonic() + timeout_s
    described = [(pid, _described(pid)) for pid in pids_marked(mark)]
    return [description for pid, description in described if description and not _ends(pid, deadline)]


def end_marked(mark: str) -> None:
    """End the processes with `mark` in their environment, and those that they start meanwhile. Returns when they have
    ended."""
    while pids := [*pids_marked(mark)]:
        deadline = time.monotonic() + END_TIMEOUT_S
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if not all(_ends(pid, deadline) for pid in pids):
            return


def pids_marked(mark: str) -> Iterator[int]:
    """The other processes with `mark` ("NAME=value"), or a folder below it, in their environment."""
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            variables = (entry / "environ").read_bytes().decode(errors="surrogateescape").split("\0")
        except OSError:  # it has ended meanwhile, or is not ours to look at
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
    """Remove all that is left of the session `folder`. A namespace ends with the processes in it."""
    end_marked(f"{MARK}={folder}")
    for point in sorted(mount_points(), reverse=True):
        if Path(point).is_relative_to(folder):
            subprocess.run(["umount", "--lazy", point], check=True)  # else its files were removed below
    with suppress(EyelevelError, OSError):  # where there are none
        parent = quota.hierarchy(Path("/proc/self/mountinfo").read_text(), Path("/proc/self/cgroup").read_text()).parent
        for prefix in (GROUPS, quota.PREFIX, idle_priority.PREFIX):
            quota.remove_abandoned(parent, prefix)
    shutil.rmtree(folder, ignore_errors=True)


def guard(folder: Path) -> "subprocess.Popen[bytes]":
    """A process that removes what is left of the session `folder` when this one has ended, though it be killed."""
    command = [sys.executable, "-m", __spec__.name, str(os.getpid()), str(folder)]
    environment = {name: value for name, value in os.environ.items() if name != MARK}
    environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    process = subprocess.Popen(command, env=environment, start_new_session=True)
    GUARDS.add(process.pid)
    return process


def main(pid: int, folder: Path) -> None:
    """Wait for the end of the process `pid`, then remove what is left of its session."""
    with suppress(ProcessLookupError):
        descriptor = os.pidfd_open(pid)
        if os.getppid() == pid:
            select.select([descriptor], [], [])
    remove_session(folder)


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
