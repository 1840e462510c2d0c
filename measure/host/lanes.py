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
from measure.host.topology import whole_cores


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
        """Their entry in `campaign.json`; empty when there is nothing to say."""
        if self.count == 1 and self.calibration is None:
            return {}
        return {
            "count": self.count,
            "cores": [list(lane.cores) for lane in self.lanes],
            "places": [described(layout(lane.cores)) for lane in self.lanes],
            "calibration": self.calibration,
        }


ONE_LANE = Lanes()


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


def cores_beside(lanes: Collection[Lane], usable: Iterable[int] | None = None) -> set[int]:
    """Where, of the processors `usable` to it, a campaign's own process works while its lanes measure: in none of them
    if any core remains, else where they analyse films, else anywhere."""
    usable = os.sched_getaffinity(0) if usable is None else set(usable)
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
