"""Idle priority: until it is lifted, a tree of processes runs only when nobody else wants a processor.

There are two ways. `idle_priority` tests each against a busy process before it is used.

policy   SCHED_IDLE (sched(7)) for each thread; threads that it starts inherit it. Lifting it needs CAP_SYS_NICE, or a
         limit of RLIMIT_NICE that ordinary users do not have. It works only within one group of processes, and some
         machines make a group of each session (autogroup).
group    a control group (cgroup, version 1) that is idle as a whole (`cpu.idle`, Linux 5.15). Lifting moves processes
         out of it. In version 2, moving would also change memory limits and the permitted processors.
"""

import os
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import cache, partial
from pathlib import Path
from statistics import median

import psutil

from base.errors import EyelevelError
from base.places import tool
from base.processes import first_readable
from measure.host.process_times import Schedstat
from measure.host.quota import hierarchy, new_group, remove_abandoned
from measure.host.timekeeping import has_real_time_priority

# In a trial, this thread and a busy process compete until the thread has run for TRIAL_S. The time that the process
# takes from the thread, relative to TRIAL_S, must be at most MOST_BEFORE while the process has idle priority, and more
# than LEAST_AFTERWARDS when it has been lifted, in the median of TRIALS: a virtual machine may halt in one of them.
TRIALS, TRIAL_S = 5, 0.02
MOST_BEFORE, LEAST_AFTERWARDS = 0.1, 0.3
START_S = 5.0
BUSY = "echo; while :; do :; done"

# The position of a process's flags in /proc/PID/stat, counted after its name (proc(5)), and one flag (linux/sched.h).
STAT_FLAGS = 6
PF_EXITING = 0x4

PREFIX = "eyelevel-idle-"
NOT_NOW = (
    "no idle priority: a trial of it has failed, perhaps since the machine was busy, so runs are prepared later; it is "
    "tried again before later blocks"
)
# The most real-time runtime of a group, in µs per second, on systems where control groups have such shares. The
# emulated network needs it.
REAL_TIME_US = 50_000


class IdlePriority(ABC):
    """A way to run a tree of processes at idle priority."""

    @abstractmethod
    def beginning(self) -> list[str | Path]:
        """The beginning of a command line that runs a program, and all that it starts, at idle priority."""

    @abstractmethod
    def lift(self, root: int) -> None:
        """Give ordinary priority to the process `root` and all its descendants. Raises OSError."""


class Policy(IdlePriority):
    """Idle priority by each thread's scheduling policy."""

    def beginning(self) -> list[str | Path]:
        return [tool("chrt"), "--idle", "0"]

    def lift(self, root: int) -> None:
        # The next pass finds threads that were started meanwhile.
        while threads := [thread for process in _tree(root) for thread in idle_threads(process)]:
            for thread in threads:
                with suppress(ProcessLookupError):
                    os.sched_setscheduler(thread, os.SCHED_OTHER, os.sched_param(0))


class Group(IdlePriority):
    """Idle priority by the control group `group`, which holds only the tree; lifting moves the tree to the group
    `ordinary`."""

    def __init__(self, group: Path, ordinary: Path) -> None:
        self._group = group
        self._ordinary = ordinary

    def beginning(self) -> list[str | Path]:
        return [tool("sh"), "-c", 'echo $$ > "$0" && exec "$@"', self._group / "cgroup.procs"]

    def lift(self, root: int) -> None:
        # Processes that were started meanwhile are in the group, and the next pass moves them.
        while processes := (self._group / "cgroup.procs").read_text().split():
            for process in processes:
                with suppress(ProcessLookupError):
                    (self._ordinary / "cgroup.procs").write_text(process)


@contextmanager
def by_policy() -> Iterator[IdlePriority]:
    """Idle priority by policy; needs no preparation. Raises EyelevelError when this user may not lift it."""
    lifted = [*Policy().beginning(), tool("chrt"), "--other", "0", tool("true")]
    if subprocess.run(lifted, stderr=subprocess.DEVNULL, check=False).returncode:
        raise EyelevelError("this user may not lift idle priority")
    yield Policy()


@contextmanager
def by_group(prefix: str = PREFIX) -> Iterator[IdlePriority]:
    """A new group whose name begins with `prefix`, while the context lasts; it must be empty at the end. Raises
    OSError, EyelevelError."""
    place = hierarchy(Path("/proc/self/mountinfo").read_text(), Path("/proc/self/cgroup").read_text())
    if place.version != 1:
        raise EyelevelError("processes cannot be moved between groups of version 2 without changing more of them")
    with ExitStack() as stack:
        group = new_group(place.parent, stack, prefix)
        try:
            (group / "cpu.idle").write_text("1")
            _allow_real_time(group, place.present)
            yield Group(group, place.present)
        finally:
            # After an interruption, remaining processes end by themselves, and the next campaign removes the group. The
            # same happens if this process is killed.
            with suppress(OSError):
                group.rmdir()


def _allow_real_time(group: Path, ordinary: Path) -> None:
    """Let processes of `group` get real-time priority if those of `ordinary` may, on systems where groups have shares
    of it."""
    share = "cpu.rt_runtime_us"
    if (group / share).exists() and (most_us := int((ordinary / share).read_text())):
        (group / share).write_text(str(min(most_us, REAL_TIME_US)))


class TrialFailedError(EyelevelError):
    """A trial of idle priority has failed, and another one may succeed."""


@contextmanager
def idle_priority(
    prefix: str = PREFIX, warn: Callable[[str], object] = lambda _: None
) -> Iterator[IdlePriority | None]:
    """A way to get idle priority that works on this machine, for this user; None if there is none, or if its trial
    fails now, which `warn` is told. It serves one tree at a time, which must have ended or been lifted when the
    context ends.

    Also removes, as far as permitted, groups whose names begin with `prefix` that killed campaigns have left, whichever
    way is used now.
    """
    with suppress(OSError, EyelevelError):
        place = hierarchy(Path("/proc/self/mountinfo").read_text(), Path("/proc/self/cgroup").read_text())
        remove_abandoned(place.parent, prefix)
    with ExitStack() as stack:
        try:
            one = stack.enter_context(way()) if (way := _way(prefix)) else None
        except TrialFailedError as error:
            warn(str(error))
            one = None
        yield one


@contextmanager
def idle_priority_of_blocks(prefix: str = PREFIX) -> Iterator[Callable[[Callable[[str], object]], IdlePriority | None]]:
    """A function to be called before each block, with a function for warnings: `idle_priority` for the rest of the
    context. Where there is none at first, it is tried anew before the 2nd, 4th, 8th, … block, since the machine may
    have been busy."""
    idle, blocks = None, 0
    with ExitStack() as stack:

        def before_block(warn: Callable[[str], object]) -> IdlePriority | None:
            nonlocal idle, blocks
            blocks += 1
            if not idle and blocks.bit_count() == 1:
                idle = stack.enter_context(idle_priority(prefix, warn))
            return idle

        yield before_block


# Remembers a way that has held, and that there is none, but no trial that has failed.
@cache
def _way(prefix: str) -> Callable[[], AbstractContextManager[IdlePriority]] | None:
    # Without real-time priority, the emulated network would be late while it is prepared, and its run would be
    # rejected.
    if not has_real_time_priority():
        return None
    ways: list[Callable[[], AbstractContextManager[IdlePriority]]] = [by_policy, partial(by_group, prefix)]
    has_failed = False
    for way in ways:
        with suppress(OSError, EyelevelError), way() as one:
            if holds(one):
                return way
            has_failed = True
    if has_failed:
        raise TrialFailedError(NOT_NOW)
    return None


def holds(way: IdlePriority, trial_s: float = TRIAL_S) -> bool:
    """Whether this `way` works: a busy process in another session leaves the processor to this process while the busy
    one has idle priority, and competes with it when it has been lifted. A trial takes `trial_s`. Raises OSError,
    EyelevelError."""
    cores, core = os.sched_getaffinity(0), min(os.sched_getaffinity(0))
    command = [*way.beginning(), tool("sh"), "-c", BUSY]
    # Only this thread, before the process starts and inherits it: the load of a new session counts for a while on each
    # core where it began, and meanwhile the session gets less of this core, as if it had idle priority.
    os.sched_setaffinity(0, [core])
    try:
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True
        ) as busy:
            assert busy.stdout
            try:
                if first_readable(busy.stdout.fileno(), timeout_s=START_S) is None or not busy.stdout.read(1):
                    return False
                if _share_beside(busy.pid, trial_s) > MOST_BEFORE:
                    return False
                way.lift(busy.pid)
                return _share_beside(busy.pid, trial_s) > LEAST_AFTERWARDS
            finally:
                busy.kill()
    finally:
        os.sched_setaffinity(0, cores)


def _share_beside(process: int, trial_s: float) -> float:
    """How long the busy `process` keeps this thread from running while the thread runs for `trial_s`, as a share of the
    thread's time: the median of several trials."""
    account, shares = Schedstat(), []
    for _ in range(TRIALS):
        before, waited_ns, began_s = account.times(process), _waited_ns(), time.thread_time()
        # Measured in this thread's processor time, since a third process may keep both from running for a while.
        while (own_s := time.thread_time() - began_s) < trial_s:
            pass
        after = account.times(process)
        if before is None or after is None:
            return 0.0
        # When this thread sleeps (another thread of Python runs, or a page of memory is read), the process takes
        # nothing from it.
        shares.append(min(after.run_ns - before.run_ns, _waited_ns() - waited_ns) / 1e9 / own_s)
    return median(shares)


def _waited_ns() -> int:
    """How long this thread has been ready without running, in ns. Raises OSError."""
    return int(Path("/proc/thread-self/schedstat").read_text().split()[1])


def require_ordinary(root: int) -> None:
    """Raises EyelevelError when `root` or one of its descendants has idle priority, or is in control groups other than
    this process's."""
    groups = Path("/proc/self/cgroup").read_text()
    for process in _tree(root):
        with suppress(FileNotFoundError, ProcessLookupError):  # the process has ended meanwhile
            name = Path(f"/proc/{process}/comm").read_text().strip()
            if idle_threads(process):
                raise EyelevelError(f"{name} of this run still has idle priority")
            # The kernel shows a process that is ending in the root group (proc_cgroup_show in kernel/cgroup/cgroup.c).
            if Path(f"/proc/{process}/cgroup").read_text() != groups and not _is_ending(process):
                raise EyelevelError(f"{name} of this run is still in another control group than others")


def idle_threads(process: int) -> list[int]:
    """The threads of `process` with the policy SCHED_IDLE."""
    threads = []
    with suppress(FileNotFoundError, ProcessLookupError):  # the process has ended meanwhile
        for entry in os.scandir(f"/proc/{process}/task"):
            with suppress(ProcessLookupError):
                if os.sched_getscheduler(int(entry.name)) & ~os.SCHED_RESET_ON_FORK == os.SCHED_IDLE:
                    threads.append(int(entry.name))
    return threads


def _is_ending(process: int) -> bool:
    """Whether `process` is ending, or has ended."""
    try:
        flags = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[STAT_FLAGS]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return bool(int(flags) & PF_EXITING)


def _tree(root: int) -> list[int]:
    """The process `root` and all its descendants; empty if it has ended."""
    try:
        return [root, *(process.pid for process in psutil.Process(root).children(recursive=True))]
    except psutil.NoSuchProcess:
        return []
