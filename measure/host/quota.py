"""`python -m measure.host.quota SHARE COMMAND…`: run a command, with all that it starts, on a share of a processor.

SHARE is relative to one processor: 0.5 is half of one, and 1.5 is three quarters of a machine with two processors. The
kernel's control groups (cgroups, version 1 or 2) let the processes run for that share of every 10 ms, and stop them for
the rest. Exits with the command's status. Processes that the command leaves running are killed.
"""

import math
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from base.errors import EyelevelError, reports_errors
from base.files import Locked, locked
from base.places import tool
from base.processes import stopped_at_the_end

# Much shorter than a frame of the screen (17 ms), so that this imitates a slower processor, not one that pauses.
PERIOD_US = 10_000
# The kernel accepts no smaller quota (`min_cfs_quota_period` in kernel/sched/core.c).
LEAST_QUOTA_US = 1_000

PREFIX = "eyelevel-quota-"
CANNOT = "the processor time of a command cannot be limited here"


@dataclass(frozen=True)
class Hierarchy:
    """A hierarchy of control groups for processor time: the group in which new groups are made, the group of this
    process, and the version (1 or 2)."""

    parent: Path
    present: Path
    version: int

    def limit(self, group: Path, share: float | None) -> None:
        """Let the processes of `group` run for `share` of one processor's time, or, if None, without limit. Raises
        EyelevelError, OSError."""
        period_us = PERIOD_US if share is None else max(PERIOD_US, math.ceil(LEAST_QUOTA_US / share))
        quota_us = None if share is None else round(share * period_us)
        if self.version == 1:
            values = {"cpu.cfs_period_us": str(period_us), "cpu.cfs_quota_us": str(quota_us or -1)}
        else:
            values = {"cpu.max": f"{quota_us or 'max'} {period_us}"}
        for name, value in values.items():
            (group / name).write_text(value)
            if (actual := (group / name).read_text().strip()) != value:
                raise EyelevelError(f"{CANNOT}: {group / name} is {actual}, not {value}")


def hierarchy(mounts: str, groups: str) -> Hierarchy:
    """The hierarchy of the machine with these contents of /proc/self/mountinfo and /proc/self/cgroup. Raises
    EyelevelError."""
    group_of = {names: path for _, names, path in (line.split(":", 2) for line in groups.splitlines())}
    # Version 2 has one hierarchy for all controllers, and its line in /proc/self/cgroup names no controllers.
    for version, kind, controller in ((1, "cgroup", "cpu"), (2, "cgroup2", "")):
        for line in mounts.splitlines():
            mounted, _, source = line.partition(" - ")
            root, point = mounted.split()[3:5]
            file_system, _, options = source.split(maxsplit=2)
            if file_system != kind or (version == 1 and "cpu" not in options.split(",")):
                continue
            group = next((path for names, path in group_of.items() if controller in names.split(",")), "/")
            present = Path(point) / group.removeprefix(root).lstrip("/")
            # In version 2, a group that has processes cannot have subgroups with controllers, except for the root.
            parent = present if version == 1 else Path(point)
            if version == 1 or "cpu" in (parent / "cgroup.controllers").read_text().split():
                return Hierarchy(parent, present, version)
    raise EyelevelError(f"{CANNOT}: no control groups (cgroups) for processor time are mounted; mount them")


@contextmanager
def limited(share: float) -> Iterator[None]:
    """Give `share` of a processor to all that is started while the context lasts; at the end, kill what remains.

    Until then, this process itself also has only that share. Raises EyelevelError when limits are not possible.
    """
    place = hierarchy(Path("/proc/self/mountinfo").read_text(), Path("/proc/self/cgroup").read_text())
    remove_abandoned(place.parent, PREFIX)
    with ExitStack() as stack:
        try:
            allow_limits(place, place.parent)
            group = new_group(place.parent, stack, PREFIX)
        except OSError as error:
            raise EyelevelError(f"{CANNOT}: {error}; it needs root and control groups that can be written") from None
        try:
            try:
                place.limit(group, share)
                (group / "cgroup.procs").write_text("0")
            except OSError as error:
                raise EyelevelError(f"{CANNOT}: {error}") from None
            yield
        finally:
            (place.present / "cgroup.procs").write_text("0")
            _kill_all(group)
            group.rmdir()


def checked_share(text: str) -> float:
    """The share in `text`. Raises EyelevelError."""
    least, most = LEAST_QUOTA_US / PERIOD_US, os.cpu_count() or 1
    with suppress(ValueError):
        if least <= (share := float(text)) <= most:
            return share
    raise EyelevelError(f"the share of a processor must be a number from {least:g} to {most}, not {text!r}")


def run(share: float, command: Sequence[str]) -> int:
    """Run `command` on `share` of a processor; returns its exit status as a shell would. Raises EyelevelError."""
    with limited(share):
        # The command must end with us, even if we are killed: nobody else would remove its limit.
        process = subprocess.Popen([tool("setpriv"), "--pdeathsig", "KILL", *command])
        with stopped_at_the_end(process):
            status = process.wait()
    return 128 - status if status < 0 else status


def allow_limits(place: Hierarchy, group: Path) -> None:
    """Let subgroups of `group` have limits. Raises OSError."""
    if place.version == 2:
        (group / "cgroup.subtree_control").write_text("+cpu")


def new_group(parent: Path, stack: ExitStack, prefix: str) -> Path:
    """A new group in `parent` whose name begins with `prefix`, locked until `stack` is closed. Raises OSError."""
    while True:
        group = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        # Until the group is locked, other processes consider it abandoned, and may be removing it.
        with suppress(Locked, FileNotFoundError), ExitStack() as attempt:
            attempt.enter_context(locked(group))
            if group.exists():
                stack.push(attempt.pop_all())
                return group


def remove_abandoned(parent: Path, prefix: str) -> None:
    """Remove the groups whose names begin with `prefix` that killed callers have left, anywhere in the hierarchy of the
    group `parent`. Groups in use are locked, and stay."""
    above = [folder for folder in parent.parents if (folder / "cgroup.procs").exists()]
    # Inner groups first.
    for group in sorted((above or [parent])[-1].glob(f"**/{prefix}*/"), reverse=True):
        with suppress(OSError, Locked), locked(group):
            group.rmdir()


def _kill_all(group: Path) -> None:
    """Kill the processes of `group`, and wait until they have ended."""
    while processes := (group / "cgroup.procs").read_text().split():
        for process in processes:
            with suppress(ProcessLookupError):
                descriptor = os.pidfd_open(int(process))
                try:
                    signal.pidfd_send_signal(descriptor, signal.SIGKILL)
                    select.select([descriptor], [], [])
                finally:
                    os.close(descriptor)


def _exit(number: int, _: FrameType | None) -> None:
    sys.exit(128 + number)


@reports_errors
def main(arguments: Sequence[str]) -> None:
    """Run the command given on the command line; exits with its status."""
    if len(arguments) < 2:
        raise EyelevelError("usage: python -m measure.host.quota SHARE COMMAND…")
    signal.signal(signal.SIGTERM, _exit)
    sys.exit(run(checked_share(arguments[0]), arguments[1:]))


if __name__ == "__main__":
    main(sys.argv[1:])
