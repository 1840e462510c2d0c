"""How fast a processor is of which processes get a share: its index (`tuning.devices`), by Lighthouse's benchmark in
Node.js, whose JavaScript engine is Chromium's.

The share by which a device's index is reached is searched once. Before and after each block it is looked whether it
still is: what a process does within its share changes with the machine (other tenants, heat). Before a block that is
waited for, and runs after which it is not so do not count (`measure.gates.pace_not_kept`).
"""

import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from base.errors import EyelevelError
from base.places import tool
from base.processes import first_readable, pinned, stopped_at_the_end
from measure.host.quota import Hierarchy, allow_limits, hierarchy, new_group, remove_abandoned
from tuning.devices import Device

PREFIX = "eyelevel-pace-"
BENCHMARK = Path(__file__).with_name("benchmark_index.mjs")
# A trial takes two seconds, whatever its share.
TRIAL_LIMIT_S = 30
# How near to the device's index a pace must be.
TOLERANCE = 0.05
# Single trials scatter by 4 % on a quiet machine. The median of a few tells that a pace is kept; where it says that it
# is not, that of more decides.
FEW, MANY = 3, 9
# A search is made of so many steps of so many trials. Each says which share is needed, and their median is taken, since
# all trials of some seconds can be off by 5 % together.
STEPS, TRIALS_OF_STEP = 3, 5
# How long a pace that is not kept is waited for, how long from one look to the next, and after how many of these the
# share is searched anew: the machine may have changed for good.
PATIENCE_S = 900
PAUSE_S = 10
LOOKS = 3
# One after a block is also one before the next, if that begins within this time.
LOOK_MAX_AGE_S = 60.0
# What a look takes: the benchmark's beginning, and the trials of each device.
LOOK_S, LOOK_OF_DEVICE_S = 3.0, 6.5

# The index that is reached with a share of a processor, or with a whole one.
Trial = Callable[[float | None], float]


class NoPace(EyelevelError):
    """The index of a device is not reached, or not steadily."""


@dataclass(frozen=True)
class Pace:
    """The share of a processor that a process of `device` gets, and the index that was reached with it."""

    device: str
    share: float
    index: float


@contextmanager
def limits() -> Iterator[tuple[Hierarchy, Path]]:
    """A hierarchy of control groups, and a new one in it below which there can be limits, until the block ends. Raises
    EyelevelError where there can be none."""
    place = hierarchy(Path("/proc/self/mountinfo").read_text(), Path("/proc/self/cgroup").read_text())
    remove_abandoned(place.parent, PREFIX)
    with ExitStack() as stack:
        with says_what_is_missing():
            allow_limits(place, place.parent)
            top = new_group(place.parent, stack, PREFIX)
            stack.callback(top.rmdir)
            allow_limits(place, top)
        yield place, top


@contextmanager
def says_what_is_missing() -> Iterator[None]:
    """An OSError of the block becomes an EyelevelError that names control groups."""
    try:
        yield
    except OSError as error:
        raise EyelevelError(
            f"a device's pace needs control groups (cgroups) that can be written, as root has them: {error}"
        ) from None


@contextmanager
def benchmark(place: Hierarchy, top: Path, cores: Sequence[int] = ()) -> Iterator[Trial]:
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


def is_near(device: Device, index: float) -> bool:
    """Whether `index` is that of `device`, within `TOLERANCE`."""
    return abs(index / device.index - 1) <= TOLERANCE


def searched(device: Device, trial: Trial) -> Pace:
    """The pace by which the index of `device` is reached. Raises NoPace if it is not, and EyelevelError where this
    machine is too slow."""
    whole = median(trial(None) for _ in range(FEW))
    if whole < device.index:
        raise EyelevelError(
            f"this machine is too slow for {device.name}: its processor has an index of {whole:.0f}, and "
            f"{device.name} has {device.index:g} (tuning/devices.toml)"
        )
    shares, indices = [device.index / whole], []
    for _ in range(STEPS):
        indices.append(index := median(trial(shares[-1]) for _ in range(TRIALS_OF_STEP)))
        shares.append(min(shares[-1] * device.index / index, 1.0))
    pace = looked_at(device, round(median(shares[1:]), 5), trial)
    if is_near(device, pace.index):
        return pace
    raise NoPace(
        f"{device.name} has an index of {device.index:g}, and the processor reached "
        f"{', '.join(f'{index:.0f}' for index in (*indices, pace.index))} as its share was changed"
    )


def looked_at(device: Device, share: float, trial: Trial) -> Pace:
    """The pace that `share` comes to now."""
    indices = [trial(share) for _ in range(FEW)]
    if not is_near(device, median(indices)):
        indices += [trial(share) for _ in range(MANY - FEW)]
    return Pace(device.name, share, round(median(indices), 1))


class Paces:
    """The paces of devices on this machine: their shares, and what the last look at each found."""

    def __init__(self) -> None:
        self._shares: dict[str, float] = {}
        self._looks: dict[str, tuple[float, Pace]] = {}

    def await_kept(self, devices: Collection[Device], cores: Sequence[int], warn: Callable[[str], object]) -> None:
        """Wait until the pace of each of `devices` is kept, on `cores` if there are any; `warn` hears of it. Raises
        EyelevelError when there is one that is not."""
        if open_devices := [device for device in devices if not self._has_fresh_look(device)]:
            with limits() as (place, top), benchmark(place, top, cores) as trial:
                for device in open_devices:
                    self._await_one(device, trial, warn)

    def pace_of(
        self, device: Device, cores: Sequence[int] = (), warn: Callable[[str], object] = lambda _: None
    ) -> Pace:
        """The pace of `device` at the last look; waits for one that is kept if there was none. Raises EyelevelError."""
        if device.name not in self._looks:
            self.await_kept([device], cores, warn)
        return self._looks[device.name][1]

    def look_again(self, devices: Collection[Device], cores: Sequence[int]) -> dict[str, Pace]:
        """What the paces of `devices` are after a block, by their names. Raises EyelevelError."""
        paces: dict[str, Pace] = {}
        if not devices:
            return paces
        with limits() as (place, top), benchmark(place, top, cores) as trial:
            for device in devices:
                paces[device.name] = pace = looked_at(device, self._shares[device.name], trial)
                self._looks.pop(device.name, None)
                if is_near(device, pace.index):
                    self._looks[device.name] = time.monotonic(), pace
        return paces

    def _has_fresh_look(self, device: Device) -> bool:
        return device.name in self._looks and time.monotonic() - self._looks[device.name][0] < LOOK_MAX_AGE_S

    def _await_one(self, device: Device, trial: Trial, warn: Callable[[str], object]) -> None:
        until, looks = time.monotonic() + PATIENCE_S, 0
        while not (pace := self._kept(device, trial, warn)):
            looks += 1
            if time.monotonic() > until:
                raise EyelevelError(
                    f"the processor has not kept the pace of {device.name} within {TOLERANCE:.0%} for too long; go on "
                    "when nothing else runs on this machine"
                )
            if looks % LOOKS == 0:
                self._shares.pop(device.name, None)
            time.sleep(PAUSE_S)
        self._looks[device.name] = time.monotonic(), pace

    def _kept(self, device: Device, trial: Trial, warn: Callable[[str], object]) -> Pace | None:
        """The pace of `device` if it is kept now, with a share that is searched if there is none."""
        if device.name not in self._shares:
            with suppress(NoPace):
                pace = searched(device, trial)
                self._shares[device.name] = pace.share
                return pace
            warn(f"the processor keeps no pace as that of {device.name}; waiting")
            return None
        pace = looked_at(device, self._shares[device.name], trial)
        if is_near(device, pace.index):
            return pace
        warn(f"the processor does not keep the pace of {device.name}: {pace.index:.0f}, not {device.index:g}; waiting")
        return None


# Those of this process, which measures one load at a time.
HERE = Paces()
