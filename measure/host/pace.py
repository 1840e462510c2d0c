"""The processor of a device in place of this machine's: a browser's processes run at the pace of the device.

What they may use of a processor is limited by control groups (cgroups, version 1 or 2): each process by a share of one,
so that no thread is faster than the device's, and all together by so many times as much as the device has cores. The
share is the one by which the device's index (`tuning.devices`) is reached. That is measured just before, by
Lighthouse's benchmark in Node.js, whose JavaScript engine is Chromium's.

Other processes of a load (its servers, the emulated network, the screen, the film) are not limited, nor is the browser
before and after the load itself.
"""

import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import psutil

from base.errors import EyelevelError
from base.places import tool
from base.processes import first_readable, pinned, stopped_at_the_end
from browsers.contract import Browser
from measure.host.quota import Hierarchy, hierarchy, new_group, remove_abandoned
from tuning.devices import Device

PREFIX = "eyelevel-pace-"
BENCHMARK = Path(__file__).with_name("benchmark_index.mjs")
# A trial takes two seconds, whatever its share.
TRIAL_LIMIT_S = 30
# How near to the device's index a pace must be, the median of how many trials tells it (single ones are off by 10 %
# beside other programs), and how often another share is tried.
TOLERANCE = 0.05
REPETITIONS = 3
TRIES = 8
# include/linux/sched.h
PF_EXITING = 0x4


@dataclass(frozen=True)
class Pace:
    """The share of a processor that a process of `device` gets, and the index that was reached with it."""

    device: str
    share: float
    index: float


class PacedProcesses:
    """The limited processes of a browser: those that descend from `root`, by the groups of `top`."""

    def __init__(self, place: Hierarchy, top: Path, root: int, browser: Browser) -> None:
        self._place, self._top, self._root, self._browser = place, top, root, browser
        self._groups: list[Path] = []

    def take_in(self, share: float, stack: ExitStack) -> None:
        """Limit each process that there is, and with it all that it will start, until `stack` is closed."""
        while others := self.outside():
            for process in others:
                group = new_group(self._top, stack, PREFIX)
                self._place.limit(group, share)
                self._groups.append(group)
                with suppress(ProcessLookupError):
                    (group / "cgroup.procs").write_text(str(process))

    def outside(self) -> list[int]:
        """The browser's processes that are not limited."""
        processes = _of_browser(self._root, self._browser)
        return [process for process in processes if _runs_outside(process, self._top.name)]

    def account(self) -> dict[str, int]:
        """How many processes there are, and how many periods the kernel has counted, and stopped one of them in."""
        periods = [_statistics(group / "cpu.stat") for group in self._groups]
        sums = {name: sum(one.get(name, 0) for one in periods) for name in ("nr_periods", "nr_throttled")}
        return {"processes": len(self._groups), "periods": sums["nr_periods"], "stopped": sums["nr_throttled"]}

    def release(self) -> None:
        """Let all of them run as others do, and remove their groups."""
        for group in self._groups:
            while processes := (group / "cgroup.procs").read_text().split():
                for process in processes:
                    with suppress(ProcessLookupError):
                        (self._place.present / "cgroup.procs").write_text(process)
            group.rmdir()


@contextmanager
def paced(
    root: int, browser: Browser, device: Device, cores: Sequence[int], keep: Callable[[dict[str, Any]], object]
) -> Iterator[None]:
    """Hold the processes of `browser` that descend from `root` at the pace of `device` while the block runs.

    It is calibrated first, on `cores` if there are any, unless it was in this block. What was done is given to `keep`.
    Raises EyelevelError when the pace cannot be had, or when a process of the browser was not limited at the end.
    """
    with limits() as (place, top), ExitStack() as stack:
        pace = calibrated(device, place, top, cores)
        processes = PacedProcesses(place, top, root, browser)
        stack.callback(processes.release)
        with _said_what_is_missing():
            place.limit(top, pace.share * device.cores)
            processes.take_in(pace.share, stack)
        yield
        if outside := processes.outside():
            raise EyelevelError(f"{len(outside)} processes of the browser ran faster than those of {device.name}")
        keep({**asdict(pace), "cores": device.cores, **processes.account()})


@contextmanager
def limits() -> Iterator[tuple[Hierarchy, Path]]:
    """A hierarchy of control groups, and a new one in it below which there can be limits, until the block ends. Raises
    EyelevelError where there can be none."""
    place = hierarchy(Path("/proc/self/mountinfo").read_text(), Path("/proc/self/cgroup").read_text())
    remove_abandoned(place.parent, PREFIX)
    with ExitStack() as stack:
        with _said_what_is_missing():
            _allow_limits(place, place.parent)
            top = new_group(place.parent, stack, PREFIX)
            stack.callback(top.rmdir)
            _allow_limits(place, top)
        yield place, top


# The index that is reached with a share of a processor, or with a whole one.
Trial = Callable[[float | None], float]


@contextmanager
def benchmark(place: Hierarchy, top: Path, cores: Sequence[int]) -> Iterator[Trial]:
    """The benchmark, on `cores` if there are any, in a group below `top` until the block ends. Raises EyelevelError, as
    trials do."""
    with ExitStack() as stack:
        group = new_group(top, stack, PREFIX)
        stack.callback(group.rmdir)
        command = [*pinned(cores), tool("node"), BENCHMARK]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        stack.enter_context(stopped_at_the_end(process))
        assert process.stdin and process.stdout
        if process.stdout.readline() != b"ready\n":
            raise EyelevelError(f"the benchmark of the processor ended with status {process.wait()}")
        (group / "cgroup.procs").write_text(str(process.pid))

        def index(share: float | None) -> float:
            assert process.stdin and process.stdout
            place.limit(group, share)
            process.stdin.write(b"\n")
            if first_readable(process.stdout.fileno(), timeout_s=TRIAL_LIMIT_S) is None:
                raise EyelevelError(f"the benchmark of the processor took more than {TRIAL_LIMIT_S} s")
            return float(process.stdout.readline())

        yield index


# The shares that the last calibrations of devices found, near which the next will be; and the paces of this block.
_last_shares: dict[str, float] = {}
_paces: dict[str, Pace] = {}


def forget_paces() -> None:
    """Let the next load on each device be calibrated anew: a block begins."""
    _paces.clear()


def calibrated(device: Device, place: Hierarchy, top: Path, cores: Sequence[int]) -> Pace:
    """The pace of `device` in this block; if it is the first, a new one. Raises EyelevelError if there is none."""
    if device.name not in _paces:
        with benchmark(place, top, cores) as index:
            _paces[device.name] = found_pace(device, index)
    return _paces[device.name]


def found_pace(device: Device, trial: Trial) -> Pace:
    """The pace by which the index of `device` is reached within `TOLERANCE`, by the median of `REPETITIONS` trials.
    Raises EyelevelError if there is none."""
    share = _last_shares.get(device.name) or _first_share(device, trial)
    tried = []
    for _ in range(TRIES):
        tried.append(index := median(trial(share) for _ in range(REPETITIONS)))
        if abs(index / device.index - 1) <= TOLERANCE:
            _last_shares[device.name] = share
            return Pace(device.name, round(share, 5), round(index, 1))
        share = min(share * device.index / index, 1.0)
    _last_shares.pop(device.name, None)
    raise EyelevelError(
        f"the processor does not keep the pace of {device.name}: its index was to be {device.index:g} within "
        f"{TOLERANCE:.0%}, and was {', '.join(f'{index:.0f}' for index in tried)}; end what else runs on this machine"
    )


def _first_share(device: Device, trial: Trial) -> float:
    whole = trial(None)
    if whole < device.index:
        raise EyelevelError(
            f"this machine is too slow for {device.name}: its processor has an index of {whole:.0f}, and "
            f"{device.name} has {device.index:g} (tuning/devices.toml)"
        )
    return device.index / whole


@contextmanager
def _said_what_is_missing() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise EyelevelError(
            f"a device's pace needs control groups (cgroups) that can be written, as root has them: {error}"
        ) from None


def _allow_limits(place: Hierarchy, group: Path) -> None:
    """Let groups below `group` have limits. Raises OSError."""
    if place.version == 2:
        (group / "cgroup.subtree_control").write_text("+cpu")


def _of_browser(root: int, browser: Browser) -> list[int]:
    """The processes of `browser` that descend from the process `root`."""
    try:
        processes = psutil.Process(root).children(recursive=True)
    except psutil.NoSuchProcess:
        return []
    return [process.pid for process in processes if browser.part(_command(process.pid))]


def _runs_outside(process: int, group: str) -> bool:
    """Whether `process` is in no group within `group`, and not ending: then the kernel takes it out."""
    try:
        if group in Path(f"/proc/{process}/cgroup").read_text():
            return False
        # What follows the name, which may have any letters (proc(5)).
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
