"""Lanes: sets of processor cores, on each of which one run is measured while others are on the others.

A lane has whole cores, since two threads of one core share its units, and cores that share a cache come to one lane as
far as possible. Nothing here knows how a run is made.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from base.errors import EyelevelError
from measure.host.affinity import described, layout

# What the kernel says of its processors, a folder for each.
PROCESSORS = Path("/sys/devices/system/cpu")
# The last cache before the memory, which several cores share.
LAST_CACHE = "cache/index3/id"


@dataclass(frozen=True)
class Lane:
    """The lane with this number (from 1), and the processors that are its own, as the kernel numbers them."""

    number: int
    cores: tuple[int, ...]


@dataclass(frozen=True)
class Lanes:
    """How many runs a machine measures at once. One is measured as on a machine without lanes.

    `lanes` are this machine's; nothing for one, and for a cluster, whose workers each have theirs. `calibration` is
    what was measured before they were chosen, as `campaign.json` keeps it; None when a person chose.
    """

    count: int = 1
    lanes: tuple[Lane, ...] = ()
    calibration: Mapping[str, Any] | None = None

    @property
    def is_here(self) -> bool:
        """Whether they are this machine's, not those of a cluster's workers."""
        return bool(self.lanes) or self.count == 1

    def record(self) -> dict[str, Any]:
        """What `campaign.json` keeps of them; nothing when there is nothing to say."""
        if self.count == 1 and self.calibration is None:
            return {}
        return {
            "count": self.count,
            "cores": [list(lane.cores) for lane in self.lanes],
            "places": [described(layout(lane.cores)) for lane in self.lanes],
            "calibration": self.calibration,
        }


ONE_LANE = Lanes()


def whole_cores(processors: Collection[int] | None = None, folder: Path = PROCESSORS) -> list[tuple[int, ...]]:
    """The cores of which this process may use any (or one of `processors`), each with its processors; neighbours in
    package and cache are neighbours in the list. A processor of which the kernel says nothing is a core."""
    usable = set(os.sched_getaffinity(0) if processors is None else processors)
    cores: dict[tuple[int, int, int], list[int]] = {}
    for processor in sorted(usable):
        of_processor = folder / f"cpu{processor}"
        siblings = processors_in(_text(of_processor / "topology/core_cpus_list") or str(processor))
        package = _text(of_processor / "topology/physical_package_id")
        cache = _text(of_processor / LAST_CACHE)
        cores.setdefault((int(package or 0), int(cache or 0), min(siblings)), []).append(processor)
    return [tuple(cores[key]) for key in sorted(cores)]


def lanes_of(count: int, cores: list[tuple[int, ...]] | None = None) -> tuple[Lane, ...]:
    """`count` lanes of equal numbers of `cores` (`whole_cores` unless given); what remains is in none. Raises
    EyelevelError when there are too few."""
    cores = whole_cores() if cores is None else cores
    size = len(cores) // count
    if size == 0:
        raise EyelevelError(f"{count} lanes need {count} processor cores, and this machine has {len(cores)} for us")
    groups = [cores[size * place : size * (place + 1)] for place in range(count)]
    return tuple(
        Lane(number, tuple(sorted(processor for core in group for processor in core)))
        for number, group in enumerate(groups, start=1)
    )


def cores_beside(lanes: Collection[Lane]) -> set[int]:
    """Where a campaign's own process works while its lanes measure: in none of them if any core remains, else where
    they analyse films, else anywhere."""
    usable = os.sched_getaffinity(0)
    if free := usable - {core for lane in lanes for core in lane.cores}:
        return free
    places = [layout(lane.cores) for lane in lanes]
    return {core for place in places if place for core in place.analysis} or usable


@contextmanager
def working_on(cores: Iterable[int]) -> Iterator[None]:
    """Run this process, all its threads and what it starts on `cores` alone while the block runs."""
    before = os.sched_getaffinity(0)
    try:
        _move_threads(set(cores))
        yield
    finally:
        _move_threads(before)


def _move_threads(cores: set[int]) -> None:
    # A thread has its affinity from the one that started it, and keeps it.
    for entry in Path("/proc/self/task").iterdir():
        with suppress(ProcessLookupError):
            os.sched_setaffinity(int(entry.name), cores)


def processors_in(text: str) -> list[int]:
    """The processors in a list of the kernel's: `0-2,8` has 0, 1, 2 and 8."""
    ends = [[int(number) for number in part.split("-")] for part in text.split(",")]
    return [processor for part in ends for processor in range(part[0], part[-1] + 1)]


def _text(path: Path) -> str:
    """What is in `path`; nothing when the kernel has no such file."""
    try:
        return path.read_text().strip()
    except OSError:
        return ""
