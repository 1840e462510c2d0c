"""The speed of a processor when processes get a share of it: the benchmark index of `tuning.devices`. It is measured by
Lighthouse's benchmark in Node.js, which has the same JavaScript engine as Chromium.

The speed of a process with a given share varies with the machine (other tenants, heat). So before each block, the share
is changed until the device's index is reached. After the block, the index is measured again; if it differs by then, the
runs do not count (`measure.run.gates.pace_not_kept`).
"""

import subprocess
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
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
# How near to the device's index a pace must be, before a block and after it.
TOLERANCE, TOLERANCE_AFTER = 0.05, 0.10
# Single trials scatter by 4 % on a quiet machine. If the median of FEW trials is near the device's index, the pace is
# kept. Otherwise the median of MANY trials decides.
FEW, MANY = 3, 9
# A share is changed at most this many times before the try counts as failed. Then the next try begins after PAUSE_S;
# tries end after PATIENCE_S.
CHANGES = 5
PAUSE_S = 10
PATIENCE_S = 900
# A measurement after a block also serves for the next block if that begins within this time.
LOOK_MAX_AGE_S = 60.0


# Measures the index with a share of a processor, or, given None, with a whole one.
Trial = Callable[[float | None], float]
# Makes trials on these cores, or on any core if there are none.
Trials = Callable[[Sequence[int]], AbstractContextManager[Trial]]


class NoPace(EyelevelError):
    """A device's index is not reached, or not steadily."""


@dataclass(frozen=True)
class Pace:
    """The share of a processor that each process of `device` gets, and the index that was measured with it."""

    device: str
    share: float
    index: float


@contextmanager
def limits() -> Iterator[tuple[Hierarchy, Path]]:
    """A hierarchy of control groups, and a new group in it whose subgroups can have limits; the group lasts as long as
    the context. Raises EyelevelError when limits are not possible."""
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
    """Turn an OSError in the context into an EyelevelError that names control groups."""
    try:
        yield
    except OSError as error:
        raise EyelevelError(
            f"a share of the processor needs control groups (cgroups) that can be written, as root has them: {error}"
        ) from None


@contextmanager
def benchmark(place: Hierarchy, top: Path, cores: Sequence[int] = ()) -> Iterator[Trial]:
    """The benchmark, on `cores` if given, in a group below `top`, while the context lasts. Raises EyelevelError, as
    trials do."""
    with ExitStack() as stack:
        group = new_group(top, stack, PREFIX)
        stack.callback(group.rmdir)
        command = [*pinned(cores), tool("node"), BENCHMARK]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        stack.enter_context(stopped_at_the_end(process))
        if _line(process) != b"ready\n":
            raise EyelevelError(f"the benchmark of the processor ended with status {process.wait()}")
        (group / "cgroup.procs").write_text(str(process.pid))

        def index(share: float | None) -> float:
            assert process.stdin
            place.limit(group, share)
            with suppress(BrokenPipeError):  # it has ended; the missing answer shows that below
                process.stdin.write(b"\n")
            if not (line := _line(process)):
                raise EyelevelError(f"the benchmark of the processor ended with status {process.wait()}")
            return float(line)

        yield index


@contextmanager
def trials(cores: Sequence[int] = ()) -> Iterator[Trial]:
    """Trials of the benchmark, on `cores` if given, while the context lasts. Raises EyelevelError, as trials do."""
    with limits() as (place, top), benchmark(place, top, cores) as trial:
        yield trial


def _line(process: "subprocess.Popen[bytes]") -> bytes:
    """The next line of the benchmark `process`; empty if it has ended. Raises EyelevelError."""
    assert process.stdout
    if first_readable(process.stdout.fileno(), timeout_s=TRIAL_LIMIT_S) is None:
        raise EyelevelError(f"the benchmark of the processor took more than {TRIAL_LIMIT_S} s")
    return process.stdout.readline()


def is_near(device: Device, index: float, tolerance: float) -> bool:
    """Whether `index` is that of `device` to within `tolerance`."""
    return abs(index / device.index - 1) <= tolerance


def first_share(device: Device, trial: Trial) -> float:
    """The share that reaches the index of `device` if speed is proportional to the share. Raises EyelevelError when
    this machine is too slow."""
    whole = median(trial(None) for _ in range(FEW))
    if whole < device.index:
        raise EyelevelError(
            f"this machine is too slow for {device.name}: its processor has an index of {whole:.0f}, and "
            f"{device.name} has {device.index:g} (tuning/devices.toml)"
        )
    return device.index / whole


def reach(device: Device, share: float, trial: Trial) -> Pace:
    """The pace of `device`: first with `share`, then with changed shares until the index is reached. Raises NoPace when
    it is not reached."""
    indices = []
    for _ in range(1 + CHANGES):
        pace = look(device, share, trial)
        if is_near(device, pace.index, TOLERANCE):
            return pace
        indices.append(pace.index)
        share = next_share(device, pace)
    raise NoPace(
        f"{device.name} has an index of {device.index:g}, and the processor reached "
        f"{', '.join(f'{index:.0f}' for index in indices)} as its share was changed"
    )


def next_share(device: Device, pace: Pace) -> float:
    """The share of a processor that should reach the index of `device`, in proportion to the measured `pace`."""
    return min(pace.share * device.index / pace.index, 1.0)


def look(device: Device, share: float, trial: Trial) -> Pace:
    """The present pace of `device` with this `share` of a processor."""
    indices = [trial(share) for _ in range(FEW)]
    if not is_near(device, median(indices), TOLERANCE):
        indices += [trial(share) for _ in range(MANY - FEW)]
    return Pace(device.name, round(share, 5), round(median(indices), 1))


class Paces:
    """The paces of devices on this machine: the last share and the last measurement of each. `trials` measure paces;
    `now` and `sleep` are a clock (s)."""

    def __init__(
        self,
        trials: Trials = trials,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._trials, self._now, self._sleep = trials, now, sleep
        self._shares: dict[str, float] = {}
        self._looks: dict[str, tuple[float, Pace]] = {}

    def await_reached(self, devices: Collection[Device], cores: Sequence[int], warn: Callable[[str], object]) -> None:
        """Wait until the pace of each of `devices` is reached, on `cores` if given; call `warn` after each failed try.
        Raises EyelevelError when a pace is not reached."""
        if open_devices := [device for device in devices if not self._has_fresh_look(device)]:
            with self._trials(cores) as trial:
                for device in open_devices:
                    self._await_one(device, trial, warn)

    def pace_of(
        self, device: Device, cores: Sequence[int] = (), warn: Callable[[str], object] = lambda _: None
    ) -> Pace:
        """The last measured pace of `device`; without one, wait until it is reached. Raises EyelevelError."""
        if device.name not in self._looks:
            self.await_reached([device], cores, warn)
        return self._looks[device.name][1]

    def look_again(self, devices: Collection[Device], cores: Sequence[int]) -> dict[str, Pace]:
        """Device name → pace after a block. Raises EyelevelError."""
        paces: dict[str, Pace] = {}
        if not devices:
            return paces
        with self._trials(cores) as trial:
            for device in devices:
                paces[device.name] = pace = look(device, self._shares[device.name], trial)
                self._looks.pop(device.name, None)
                if is_near(device, pace.index, TOLERANCE):
                    self._looks[device.name] = self._now(), pace
                else:
                    self._shares[device.name] = next_share(device, pace)
        return paces

    def _has_fresh_look(self, device: Device) -> bool:
        return device.name in self._looks and self._now() - self._looks[device.name][0] < LOOK_MAX_AGE_S

    def _await_one(self, device: Device, trial: Trial, warn: Callable[[str], object]) -> None:
        until = self._now() + PATIENCE_S
        while True:
            try:
                pace = reach(device, self._shares.get(device.name) or first_share(device, trial), trial)
            except NoPace as error:
                # The machine's speed may have changed.
                self._shares.pop(device.name, None)
                if self._now() > until:
                    raise EyelevelError(
                        f"{error}, again and again; resume when nothing else runs on this machine"
                    ) from None
                warn(f"{error}; trying again")
                self._sleep(PAUSE_S)
            else:
                self._shares[device.name] = pace.share
                self._looks[device.name] = self._now(), pace
                return


# The paces of this process, which measures one load at a time.
HERE = Paces()
