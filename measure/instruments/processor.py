"""The processor's share in a load: how long the processes of the browser, servers, emulator and film ran, and how long
they waited for a processor, over time.

A thread outside the replay asks the kernel about all its processes about ten times a second, and leaves `PROCESSOR` in
the load's folder. It uses at most `MOST_SHARE` of one processor: if asking takes longer, it asks less often. The times
of ended threads are included (`measure.host.process_times`). The times of a process between its last sample and its end
are not.

The kernel counts some sleep as waiting. If the priority or control group of a sleeping thread is changed, the kernel
counts the time from this change until the thread wakes up as waiting. (Since Linux 6.12, a sleeping thread may still be
in a run queue: delayed dequeue.) So the servers of a load that was prepared at idle priority seemed to wait from the
moment in which they got ordinary priority until their first request, for 10 s and more each. In each sample, a
process's new waits are compared with the time since the last sample but one, for each of its threads. Waits that add up
to more are impossible, and are not counted; `impossible` in `PROCESSOR` says how often there were any.
"""

import math
import os
import threading
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from base.errors import EyelevelError
from base.files import read_json, write_json
from base.jail import START_JAILER
from browsers.contract import PARTS, Browser
from browsers.registry import browser_named
from dataset.columns import Column
from dataset.run_files import PROCESSOR
from measure.host.process_files import command_line, kernel_file
from measure.host.process_times import Account, kernel_account
from measure.instruments.contract import FinishedRun, Instrument, ObservedLoad, Readings
from replay.spec import SERVERS as SERVERS_FOLDER
from servers.registry import programs_of

SERVERS, EMULATOR, FILM, REST = "servers", "emulator", "film", "rest"
# The roles of a load's processes: the browser's parts, and all others. The film's are its recorder and the screen.
ROLES = (*PARTS, SERVERS, EMULATOR, FILM, REST)
FILM_PROGRAMS = ("film-recorder", "Xvfb")
# The roles that have a column of processor time in `runs.csv`, and those whose waits may delay a page.
TIMED_ROLES = (*PARTS, SERVERS, EMULATOR, FILM)
WAITING_ROLES = (*PARTS, SERVERS, EMULATOR)
# Until then, the code looked for uWSGI by another name than its program's.
UWSGI_MISSING = (
    "in data measured up to 30 November 2026, uWSGI's share is missing (behind all servers but quic_server and quinn)"
)
MEANINGS = {
    "browser": "processor time of the browser's own process during the load, and of its helpers that have no column; "
    "all threads together, so it may be longer than the load. This and the next seven columns cover the time from the "
    "start of the navigation to the load event or the last visual change, whichever is later "
    "([how](contributors/processor-time.md)); empty where they were not measured",
    "renderer": "the same of the processes that run the page's scripts and lay it out",
    "network": "the same of the browser's network stack, QUIC and TLS included; TCP itself is the kernel's",
    "gpu": "the same of the process that paints",
    SERVERS: f"the same of the servers; {UWSGI_MISSING}",
    EMULATOR: "the same of the emulated network",
    FILM: "the same of the film, its screen included",
}

PERIOD_S = 0.1
MOST_SHARE = 0.005
# A new process may still execute another program (execve(2)), so its role is determined again in its first LOOKS
# samples.
LOOKS = 10
# Positions in /proc/PID/stat (proc_pid_stat(5)), counted from the first field after the process's name.
PARENT, THREADS, START_TIME = 1, 17, 19


class Birth(NamedTuple):
    """The `parent` of a process, and when it `began`, in the kernel's ticks since the machine started."""

    parent: int
    began: int


def kernels_birth_of(process: int) -> Birth | None:
    """The birth of `process`, read from the kernel; None if it has ended."""
    fields = kernel_file(process, "stat").rpartition(b")")[2].split()
    return Birth(int(fields[PARENT]), int(fields[START_TIME])) if fields else None


def threads_of(process: int) -> int:
    """How many threads `process` has; 0 if it has ended."""
    fields = kernel_file(process, "stat").rpartition(b")")[2].split()
    return int(fields[THREADS]) if fields else 0


def role_of(process: int, browser: Browser, server_programs: Collection[str]) -> str:
    """The role of `process` in a load with these programs."""
    command = command_line(process)
    if START_JAILER in command:
        return REST  # although the rest of the line is that of the program in the jail
    program = Path(command.partition(" ")[0]).name.rstrip(":")
    # Debian calls uWSGI's program uwsgi-core, and versions are of uwsgi.
    if program in server_programs or program.removesuffix("-core") in server_programs:
        return SERVERS
    # A program of the user's may be a script, or execute other programs.
    if any("/" in name for name in server_programs) and _is_in_servers_jail(process):
        return SERVERS
    if program.startswith("mm-"):
        return EMULATOR
    return FILM if program in FILM_PROGRAMS else browser.part(command) or REST


def _is_in_servers_jail(process: int) -> bool:
    """Whether the nearest jail around `process` is that of a server."""
    while birth := kernels_birth_of(process):
        process = birth.parent
        if START_JAILER in (command := command_line(process)):
            return f" --writable {SERVERS_FOLDER}" in command
    return False


class Sampler:
    """Samples the processes that descend from the process `root`, until `ended` is set. `birth_of` returns the birth of
    a process; None if it has ended. `clock` has the time in s since 1970."""

    def __init__(
        self,
        root: int,
        browser: Browser,
        server_programs: Collection[str],
        account: Account,
        birth_of: Callable[[int], Birth | None] = kernels_birth_of,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._browser, self._account, self._birth_of, self._clock = browser, account, birth_of, clock
        self._server_programs = server_programs
        # Process → its role, and how often it was looked at. The births are kept, too, since the kernel reuses the
        # number of an ended process for another, possibly unrelated one.
        self._roles: dict[int, tuple[str, int]] = {root: (REST, 0)}
        self._births: dict[int, Birth] = {}
        self._others: set[int] = set()
        # All processors on which one of these processes could run.
        self.affinity: set[int] = set()
        self._last: dict[int, tuple[int, int | None]] = {}
        self._run_ns = dict.fromkeys(ROLES, 0)
        self._wait_ns: dict[str, int | None] = dict.fromkeys(ROLES, 0)
        self.ended = threading.Event()
        self.cost_s = 0.0
        self.at_s: list[float] = []
        self.impossible = 0
        self.run_ms: dict[str, list[float]] = {role: [] for role in ROLES}
        self.wait_ms: dict[str, list[float | None]] = {role: [] for role in ROLES}

    def run(self, cores: Collection[int]) -> None:
        """Sample until the end, and once more at the end, on `cores` if given.

        On a slow machine, samples are seconds apart. The sample at the end ensures that the samples cover the load's
        end.
        """
        if cores:
            os.sched_setaffinity(0, cores)  # only this thread
        began_s = time.thread_time()
        while True:
            is_last = self.ended.is_set()
            self.sample()
            if is_last:
                return
            cost_s, self.cost_s = self.cost_s, time.thread_time() - began_s
            self.ended.wait(max(PERIOD_S, (self.cost_s - cost_s) / MOST_SHARE))

    def sample(self) -> None:
        """Take one sample."""
        self._follow_tree()
        self.at_s.append(self._clock())
        for process, (role, _) in list(self._roles.items()):
            if (times := self._account.times(process)) is None:
                continue
            run_ns, wait_ns = self._last.get(process, (0, 0))
            if times.run_ns < run_ns:
                self._forget(process)
                continue
            self._run_ns[role] += times.run_ns - run_ns
            total = self._wait_ns[role]
            if times.wait_ns is None or wait_ns is None or total is None:
                self._wait_ns[role] = None
            else:
                self._wait_ns[role] = total + self._possible(process, times.wait_ns - wait_ns)
            self._last[process] = (times.run_ns, times.wait_ns)
        for role in ROLES:
            self.run_ms[role].append(round(self._run_ns[role] / 1e6, 3))
            wait = self._wait_ns[role]
            self.wait_ms[role].append(None if wait is None else round(wait / 1e6, 3))

    def _possible(self, process: int, waited_ns: int) -> int:
        """For how long `process` has waited since the last sample, if the kernel says `waited_ns`; 0 if its threads
        cannot have waited for so long."""
        # The kernel counts a wait only when it ends. So the wait may have begun before the last sample; it is assumed
        # to have begun after the one before that.
        since_s = self.at_s[-1] - self.at_s[-3] if len(self.at_s) > 2 else math.inf
        if waited_ns <= 1e9 * since_s or waited_ns <= 1e9 * since_s * threads_of(process):
            return waited_ns
        self.impossible += 1
        return 0

    def _follow_tree(self) -> None:
        """Update the set of processes, and their roles."""
        present = {int(entry.name) for entry in os.scandir("/proc") if entry.name.isdigit()}
        self._others &= present
        for process, (_, looks) in list(self._roles.items()):
            if process not in present or (looks < LOOKS and not self._is_as_before(process)):
                self._forget(process)
        unknown = {process: self._birth_of(process) for process in present - self._others - self._roles.keys()}
        while members := [process for process, birth in unknown.items() if birth and birth.parent in self._roles]:
            for process in members:
                if birth := unknown.pop(process):
                    self._births[process] = birth
                self._roles[process] = (REST, 0)
        self._others |= unknown.keys()
        for process, (_, looks) in self._roles.items():
            if looks < LOOKS:
                self._roles[process] = (self._role(process), looks + 1)
                with suppress(ProcessLookupError):
                    self.affinity |= os.sched_getaffinity(process)

    def _is_as_before(self, process: int) -> bool:
        """Whether the number `process` still belongs to the process that had it at first."""
        birth = self._birth_of(process)
        return birth is not None and birth.began == self._births.setdefault(process, birth).began

    def _forget(self, process: int) -> None:
        """Forget a process that has ended, except for its times."""
        for known in (self._roles, self._births, self._last):
            known.pop(process, None)

    def _role(self, process: int) -> str:
        return role_of(process, self._browser, self._server_programs)


@contextmanager
def sampling(
    root: int,
    folder: Path,
    browser: Browser,
    server_programs: Collection[str],
    cores: Collection[int] = (),
    account_of_times: Callable[[], Account] = kernel_account,
) -> Iterator[None]:
    """Sample the processes that descend from `root` while the context lasts. The sampling thread runs on `cores`, if
    given, and reads times from the account that `account_of_times` opens.

    Leaves `PROCESSOR` in `folder`, unless the context fails. Raises EyelevelError when the kernel does not answer.
    """
    account = account_of_times()
    sampler = Sampler(root, browser, server_programs, account)
    with closing(account), ThreadPoolExecutor(1) as pool:
        samples = pool.submit(sampler.run, cores)
        try:
            yield
        finally:
            sampler.ended.set()
        try:
            samples.result()
        except OSError as error:
            raise EyelevelError(f"the kernel does not show how long processes ran: {error}") from None
        write_json(
            folder / PROCESSOR,
            {
                "account": account.name,
                "cores": len(os.sched_getaffinity(0)),
                "affinity": sorted(sampler.affinity),
                "impossible": sampler.impossible,
                "own_ms": round(1e3 * sampler.cost_s, 1),
                "at_s": [round(at_s, 4) for at_s in sampler.at_s],
                "run_ms": sampler.run_ms,
                "wait_ms": sampler.wait_ms,
            },
        )


def affinity_of(folder: Path) -> set[int]:
    """The processors on which any process of the load in `folder` could run; empty without samples."""
    try:
        return set(read_json(folder / PROCESSOR).get("affinity", ()))
    except EyelevelError:
        return set()


class Processor(Instrument):
    """Samples the processes of a load, on the cores for film analysis, and leaves PROCESSOR."""

    name = "processor"
    columns = (
        *(Column(f"{role}_cpu_ms", "ms", MEANINGS[role]) for role in TIMED_ROLES),
        Column(
            "processor_wait_ms",
            "ms",
            "for how long the threads of all of these but the film were ready to run and waited for a processor, in "
            f"sum; threads wait side by side, so the load became longer by less; {UWSGI_MISSING}",
        ),
    )

    def around_load(self, load: ObservedLoad) -> AbstractContextManager[None]:
        """Sample while the context lasts. Raises EyelevelError when the kernel does not answer."""
        cores = load.layout.analysis if load.layout else ()
        return sampling(load.root, load.folder, browser_named(load.browser), programs_of([load.protocol]), cores)

    def read(self, run: FinishedRun) -> Readings:
        """The processor's share from the navigation until the end of the load, interpolated between samples. Empty if
        the samples do not cover that time; None for what the kernel does not count."""
        return {} if run.load_s is None else shares(run.folder, *run.load_s)


INSTRUMENT = Processor()


def shares(folder: Path, began_s: float, ended_s: float) -> dict[str, float | None]:
    """`<role>_cpu_ms` of TIMED_ROLES, and `processor_wait_ms` of all WAITING_ROLES together, for the load in `folder`
    from `began_s` to `ended_s` (s since 1970)."""
    import numpy as np  # late: the process that drives the browser imports all instruments, and needs no arrays

    try:
        samples = read_json(folder / PROCESSOR)
    except EyelevelError:
        return {}
    at_s = samples["at_s"]
    if not at_s or began_s < at_s[0] or ended_s > at_s[-1]:
        return {}

    def between(values: list[float | None]) -> float | None:
        if None in values:
            return None
        began, ended = np.interp([began_s, ended_s], at_s, np.array(values, dtype=float))
        return round(float(ended - began), 1)

    waits = [between(samples["wait_ms"][role]) for role in WAITING_ROLES]
    columns = {f"{role}_cpu_ms": between(samples["run_ms"][role]) for role in TIMED_ROLES}
    return {**columns, "processor_wait_ms": None if None in waits else round(sum(filter(None, waits)), 1)}
