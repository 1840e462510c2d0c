"""Lanes: sets of processor cores. One run is measured on each while other runs are measured on the others.

A lane has whole cores, since two threads of a core share its units. As far as possible, cores that share a cache are in
the same lane. On a slow network, a load leaves its cores idle most of the time; there several lanes have the same
cores. Nothing here depends on how runs are made.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from base.errors import EyelevelError
from measure.host.affinity import described, layout
from measure.host.topology import whole_cores

# The memory of a load: Chromium's processes with a heavy page, servers and the film.
MEMORY_OF_LOAD_BYTES = 500_000_000


@dataclass(frozen=True)
class Lane:
    """The lane with this number (from 1), and its processors by the kernel's numbers."""

    number: int
    cores: tuple[int, ...]


@dataclass(frozen=True)
class Lanes:
    """How many runs a machine measures at once. With one, the machine has no lanes.

    `count`: how many disjoint sets of cores there are. `lanes` are this machine's, one for each set: empty with `count`
    1, and for a cluster, whose workers each have their own. `at_once`: network → how many loads on it share each set;
    one on all others. `calibration` is the measurement by which these were chosen, as stored in `campaign.json`; None
    if a person chose.
    """

    count: int = 1
    lanes: tuple[Lane, ...] = ()
    calibration: Mapping[str, Any] | None = None
    at_once: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_one(self) -> bool:
        """Whether runs are measured one at a time on every network."""
        return self.count == 1 and not self.at_once

    def runs_at_once(self, network: str) -> int:
        """How many runs on `network` are measured at once, on all cores together."""
        return self.count * self.at_once.get(network, 1)

    @property
    def loads_of_cores(self) -> int:
        """How many lanes have the same cores, since loads on some network share them."""
        return max(self.at_once.values(), default=1)

    def places(self) -> tuple[Lane, ...]:
        """All lanes of this machine, numbered from 1: those that share cores follow each other."""
        cores = [lane.cores for lane in self.lanes or lanes_of(self.count) for _ in range(self.loads_of_cores)]
        return tuple(Lane(number, one) for number, one in enumerate(cores, start=1))

    def set_of(self, lane: int) -> int:
        """The number (from 0) of the set of cores of the lane with this number."""
        return (lane - 1) // self.loads_of_cores

    @property
    def is_here(self) -> bool:
        """Whether the lanes are on this machine, rather than on a cluster's workers."""
        return bool(self.lanes) or self.count == 1

    def value(self) -> str:
        """These lanes as a value of the option --lanes: "1", "2" or "2,mss:6"."""
        return ",".join((str(self.count), *(f"{network}:{number}" for network, number in sorted(self.at_once.items()))))

    def __str__(self) -> str:
        """How many runs are measured at once, as an addition to a text: " in 2 lanes, 4 at once on mss". Empty if runs
        are measured one at a time."""
        shared = "".join(f", {number} at once on {network}" for network, number in self.at_once.items())
        return f"{f' in {self.count} lanes' if self.count > 1 else ''}{shared}"

    def record(self) -> dict[str, Any]:
        """The lanes' entry in `campaign.json`; empty with one lane and no calibration."""
        if self.is_one and self.calibration is None:
            return {}
        return {
            "count": self.count,
            **({"at_once": dict(self.at_once)} if self.at_once else {}),
            "cores": [list(lane.cores) for lane in self.lanes],
            "places": [described(layout(lane.cores)) for lane in self.lanes],
            "calibration": self.calibration,
        }


ONE_LANE = Lanes()


def lanes_of(count: int, cores: list[tuple[int, ...]] | None = None) -> tuple[Lane, ...]:
    """`count` lanes of the same number of `cores` (default: `whole_cores`); remaining cores are in no lane. Raises
    EyelevelError when there are too few cores."""
    cores = whole_cores() if cores is None else cores
    size = len(cores) // count
    if size == 0:
        raise EyelevelError(f"{count} lanes need {count} processor cores, and this machine has {len(cores)} available")
    groups = [cores[size * place : size * (place + 1)] for place in range(count)]
    return tuple(
        Lane(number, tuple(sorted(processor for core in group for processor in core)))
        for number, group in enumerate(groups, start=1)
    )


def cores_beside(lanes: Collection[Lane], usable: Iterable[int] | None = None) -> set[int]:
    """The processors, among `usable` ones, for a campaign's own process while its lanes measure: those outside all
    lanes; if there are none, those on which lanes analyse films; otherwise all."""
    usable = os.sched_getaffinity(0) if usable is None else set(usable)
    if free := usable - {core for lane in lanes for core in lane.cores}:
        return free
    places = [layout(lane.cores) for lane in lanes]
    return {core for place in places if place for core in place.analysis} or usable


@contextmanager
def working_on(cores: Iterable[int]) -> Iterator[None]:
    """Run this process, with all its threads and all that it starts, only on `cores` while the context lasts."""
    before = os.sched_getaffinity(0)
    try:
        _move_threads(set(cores))
        yield
    finally:
        _move_threads(before)


def _move_threads(cores: set[int]) -> None:
    # A thread inherits its affinity when it is started, so each thread must be moved.
    for entry in Path("/proc/self/task").iterdir():
        with suppress(ProcessLookupError):
            os.sched_setaffinity(int(entry.name), cores)
