"""Makes processes of a load slower: those of a browser, which run at a device's pace, or those of the browser and the
servers, which get a share of the processor.

Control groups (cgroups, version 1 or 2) limit processor time. Each process gets a share of one processor, so that no
thread is faster than on the slower machine; all together get one such share for each of its cores. A device's share is
the one that reaches its index (`measure.host.device_index`).

Other processes of a load (emulated network, screen, film) are not limited, nor is any process before and after the load
itself.
"""

import os
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil

from base.errors import EyelevelError
from browsers.contract import Browser
from measure.host.device_index import HERE, PREFIX, limits, says_what_is_missing
from measure.host.process_files import command_line
from measure.host.quota import Hierarchy, new_group
from tuning.devices import Device

# include/linux/sched.h
PF_EXITING = 0x4
# The parts (`browsers.contract.PARTS`) for which every browser has a process already before its page is loaded.
PARTS_BEFORE = {"browser", "renderer", "network"}


# Takes a process; returns the part of the load that it has; None if it is not to be limited.
PartOf = Callable[[int], str | None]


class PacedProcesses:
    """The processes that have a part in a load (`part_of`), all descendants of the process `root`. A control group in
    `top` limits each."""

    def __init__(self, place: Hierarchy, top: Path, root: int, part_of: PartOf) -> None:
        self._place, self._top, self._root, self._part_of = place, top, root, part_of
        self._groups: list[Path] = []
        self._parts: list[str | None] = []
        self._programs: set[str] = set()

    def take_in(self, share: float | None, locks: ExitStack) -> None:
        """Limit each process that exists, and all that it will start, until `release`. If `share` is None, they are
        only put into groups. `locks` gets the locks on their groups."""
        while others := self.outside():
            for process in others:
                group = new_group(self._top, locks, PREFIX)
                self._groups.append(group)
                self._place.limit(group, share)
                part = self._part_of(process)
                # A process that has ended meanwhile is not limited.
                with suppress(ProcessLookupError, FileNotFoundError):
                    (group / "cgroup.procs").write_text(str(process))
                    self._parts.append(part)
                    self._programs.add(Path(f"/proc/{process}/comm").read_text().strip())

    def outside(self) -> list[int]:
        """The processes with a part that are not limited."""
        processes = _with_part(self._root, self._part_of)
        return [process for process in processes if _runs_outside(process, self._top.name)]

    def require_all(self, cores: Collection[int]) -> None:
        """Raise EyelevelError when a process with a part is not limited, or may run on others than these `cores`: with
        cgroups of version 2 and Linux before 6.2, a process that gets into a group may run on all."""
        if outside := self.outside():
            raise EyelevelError(f"{len(outside)} processes of the load ran without their limit of the processor")
        if not self.cores() <= {*cores}:
            raise EyelevelError(
                f"a limited process could run on more than the processors {sorted(cores)}; use Linux 6.2 or later, or "
                "control groups (cgroups) of version 1"
            )

    def parts(self) -> set[str | None]:
        """The parts that have a limited process."""
        return {*self._parts}

    def cores(self) -> set[int]:
        """The processors that the limited processes may run on."""
        allowed: set[int] = set()
        for group in self._groups:
            for process in (group / "cgroup.procs").read_text().split():
                with suppress(ProcessLookupError):
                    allowed |= os.sched_getaffinity(int(process))
        return allowed

    def account(self) -> dict[str, Any]:
        """The number of limited processes and the names of their programs, the number of periods that the kernel
        counted, and of periods in which a process was stopped."""
        periods = [_statistics(group / "cpu.stat") for group in self._groups]
        sums = {name: sum(one.get(name, 0) for one in periods) for name in ("nr_periods", "nr_throttled")}
        return {
            "processes": len(self._groups),
            "programs": sorted(self._programs),
            "periods": sums["nr_periods"],
            "stopped": sums["nr_throttled"],
        }

    def release(self) -> None:
        """Remove the limits of all processes, and their groups. Raises EyelevelError when a group cannot be removed."""
        with says_what_is_missing():
            for group in self._groups:
                while processes := (group / "cgroup.procs").read_text().split():
                    for process in processes:
                        with suppress(ProcessLookupError):
                            (self._place.present / "cgroup.procs").write_text(process)
                group.rmdir()


def cores_of(device: Device, cores: Sequence[int] = ()) -> Sequence[int]:
    """As many of `cores` as `device` has; all of them if there are fewer. Without `cores`, those that this process may
    use."""
    return (cores or sorted(os.sched_getaffinity(0)))[: device.cores]


@contextmanager
def paced(
    root: int, browser: Browser, device: Device, cores: Sequence[int], keep: Callable[[dict[str, Any]], object]
) -> Iterator[None]:
    """Hold the processes of `browser` that descend from `root` at the pace of `device` while the context lasts.

    The pace is the one last measured, on `cores` if given. `keep` receives an account of it. Raises EyelevelError when
    the pace cannot be reached, when at the beginning a process is missing that every page has, or when at the end a
    process is not limited, or may run on more processors than the device has.
    """
    pace = HERE.pace_of(device, cores)
    browser_cores = cores_of(device, cores)

    def part_of(process: int) -> str | None:
        return browser.part(command_line(process))

    with _limited(root, part_of, PARTS_BEFORE, pace.share, pace.share * device.cores) as processes:
        yield
        processes.require_all(browser_cores)
        keep({**asdict(pace), "cores": device.cores, "processors": len(browser_cores), **processes.account()})


@contextmanager
def limited_to_share(
    root: int,
    part_of: PartOf,
    expected: Collection[str],
    share: float,
    cores: Collection[int],
    keep: Callable[[dict[str, Any]], object],
) -> Iterator[None]:
    """Give each process with a part (`part_of`) that descends from `root` the `share` of one processor while the
    context lasts, and all together that share of the processors `cores`. With a share of 1 they are in groups, too, but
    not limited, so that loads with different shares differ in nothing else.

    `keep` receives an account of it. Raises EyelevelError when limits are not possible, when at the beginning one of
    the `expected` parts has no process, or when at the end a process with a part is not limited, or may run on others
    than these processors.
    """
    limit = None if share == 1 else share
    with _limited(root, part_of, expected, limit, limit and limit * len(cores)) as processes:
        yield
        processes.require_all(cores)
        keep({"share": share, "processors": len(cores), **processes.account()})


@contextmanager
def _limited(
    root: int, part_of: PartOf, expected: Collection[str], share: float | None, total: float | None
) -> Iterator[PacedProcesses]:
    """Limit each process with a part that descends from `root` to the `share` of one processor while the context lasts,
    and all together to `total` processors; None is no limit.

    Raises EyelevelError when limits are not possible, or when one of the `expected` parts has no process.
    """
    with limits() as (place, top), ExitStack() as locks:
        processes = PacedProcesses(place, top, root, part_of)
        try:
            with says_what_is_missing():
                place.limit(top, total)
                processes.take_in(share, locks)
            if missing := {*expected} - processes.parts():
                raise EyelevelError(f"the load had no process of its own for its {' and '.join(sorted(missing))}")
            yield processes
        finally:
            # Before the locks are: another load would take an empty group without a lock for abandoned, and remove it.
            processes.release()


def _with_part(root: int, part_of: PartOf) -> list[int]:
    """The processes with a part that descend from the process `root`."""
    try:
        processes = psutil.Process(root).children(recursive=True)
    except psutil.NoSuchProcess:
        return []
    return [process.pid for process in processes if part_of(process.pid)]


def _runs_outside(process: int, group: str) -> bool:
    """Whether `process` is in no subgroup of `group`. A process that is ending does not count: the kernel has taken it
    out of its group."""
    try:
        if group in Path(f"/proc/{process}/cgroup").read_text():
            return False
        # The fields after the name, which may contain any characters (proc(5)).
        flags = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[6])
    except (FileNotFoundError, ProcessLookupError):
        return False
    return not flags & PF_EXITING


def _statistics(file: Path) -> dict[str, int]:
    return {name: int(value) for name, value in (line.split() for line in file.read_text().splitlines())}
