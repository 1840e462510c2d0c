"""The processor of a device in place of this machine's: a browser's processes run at the pace of the device.

Control groups (cgroups, version 1 or 2) limit their use of a processor: each process gets a share of one, so that no
thread is faster than the device's, and all together get one such share for each core of the device. The share is the
one by which the device's index is reached (`measure.host.device_index`).

Other processes of a load (its servers, the emulated network, the screen, the film) are not limited, nor is the browser
before and after the load itself.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

import psutil

from base.errors import EyelevelError
from browsers.contract import Browser
from measure.host.device_index import HERE, PREFIX, limits, says_what_is_missing
from measure.host.quota import Hierarchy, new_group
from tuning.devices import Device

# include/linux/sched.h
PF_EXITING = 0x4
# The parts (`browsers.contract.PARTS`) of which every browser has a process when it awaits its page.
PARTS_BEFORE = {"browser", "renderer", "network"}


class PacedProcesses:
    """The processes of a browser, which descend from the process `root`, each limited by a control group in `top`."""

    def __init__(self, place: Hierarchy, top: Path, root: int, browser: Browser) -> None:
        self._place, self._top, self._root, self._browser = place, top, root, browser
        self._groups: list[Path] = []
        self._parts: list[str | None] = []

    def take_in(self, share: float, stack: ExitStack) -> None:
        """Limit each process that exists, and all that it will start, until `stack` is closed."""
        while others := self.outside():
            for process in others:
                group = new_group(self._top, stack, PREFIX)
                self._place.limit(group, share)
                self._groups.append(group)
                part = self._browser.part(_command(process))
                # It may have ended meanwhile, and then it is no limited process.
                with suppress(ProcessLookupError):
                    (group / "cgroup.procs").write_text(str(process))
                    self._parts.append(part)

    def outside(self) -> list[int]:
        """The browser's processes that are not limited."""
        processes = _of_browser(self._root, self._browser)
        return [process for process in processes if _runs_outside(process, self._top.name)]

    def parts(self) -> set[str | None]:
        """Which parts of the browser have a limited process of their own."""
        return {*self._parts}

    def cores(self) -> set[int]:
        """The processors that the limited processes may run on."""
        allowed: set[int] = set()
        for group in self._groups:
            for process in (group / "cgroup.procs").read_text().split():
                with suppress(ProcessLookupError):
                    allowed |= os.sched_getaffinity(int(process))
        return allowed

    def account(self) -> dict[str, int]:
        """How many processes are limited, how many periods the kernel counted, and in how many one was stopped."""
        periods = [_statistics(group / "cpu.stat") for group in self._groups]
        sums = {name: sum(one.get(name, 0) for one in periods) for name in ("nr_periods", "nr_throttled")}
        return {"processes": len(self._groups), "periods": sums["nr_periods"], "stopped": sums["nr_throttled"]}

    def release(self) -> None:
        """Let all of them run as others do, and remove their groups. Raises EyelevelError when a group cannot be."""
        with says_what_is_missing():
            for group in self._groups:
                while processes := (group / "cgroup.procs").read_text().split():
                    for process in processes:
                        with suppress(ProcessLookupError):
                            (self._place.present / "cgroup.procs").write_text(process)
                group.rmdir()


def cores_of(device: Device, cores: Sequence[int] = ()) -> Sequence[int]:
    """As many of `cores`, or of all that this process may use, as `device` has; all where there are fewer."""
    return (cores or sorted(os.sched_getaffinity(0)))[: device.cores]


@contextmanager
def paced(
    root: int, browser: Browser, device: Device, cores: Sequence[int], keep: Callable[[dict[str, Any]], object]
) -> Iterator[None]:
    """Hold the processes of `browser` that descend from `root` at the pace of `device` while the block runs.

    The pace is that of the last look, on `cores` if there are any. An account of it is given to `keep`. Raises
    EyelevelError when the pace cannot be had, when a process that every page has was not there at the beginning, or
    when one was not limited at the end.
    """
    pace = HERE.pace_of(device, cores)
    browser_cores = cores_of(device, cores)
    with limits() as (place, top), ExitStack() as stack:
        processes = PacedProcesses(place, top, root, browser)
        stack.callback(processes.release)
        with says_what_is_missing():
            place.limit(top, pace.share * device.cores)
            processes.take_in(pace.share, stack)
        if missing := PARTS_BEFORE - processes.parts():
            raise EyelevelError(f"the browser had no process of its own for its {' and '.join(sorted(missing))}")
        yield
        if outside := processes.outside():
            raise EyelevelError(f"{len(outside)} processes of the browser ran faster than those of {device.name}")
        if not processes.cores() <= {*browser_cores}:
            raise EyelevelError(f"a process of the browser could run on more than the processors {browser_cores}")
        keep({**asdict(pace), "cores": device.cores, "processors": len(browser_cores), **processes.account()})


def _of_browser(root: int, browser: Browser) -> list[int]:
    """The processes of `browser` that descend from the process `root`."""
    try:
        processes = psutil.Process(root).children(recursive=True)
    except psutil.NoSuchProcess:
        return []
    return [process.pid for process in processes if browser.part(_command(process.pid))]


def _runs_outside(process: int, group: str) -> bool:
    """Whether `process` is in no group within `group`. One that ends is not: the kernel takes it out of its group."""
    try:
        if group in Path(f"/proc/{process}/cgroup").read_text():
            return False
        # The fields after the name, which may have any letters (proc(5)).
        flags = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[6])
    except (FileNotFoundError, ProcessLookupError):
        return False
    return not flags & PF_EXITING


def _command(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
    except OSError:
        return ""


def _statistics(file: Path) -> dict[str, int]:
    return {name: int(value) for name, value in (line.split() for line in file.read_text().splitlines())}
