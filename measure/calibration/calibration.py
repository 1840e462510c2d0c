"""Tries numbers of runs at once, by bisection, until the largest number that disturbs no run is known."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from base.clock import now_iso
from base.words import plural
from measure.calibration.equivalence import (
    BOUND,
    DISTURBED,
    EQUIVALENT,
    ERROR,
    LOOKS,
    OPEN,
    Comparison,
    Round,
    comparisons,
    verdict,
)
from measure.host.affinity import CORES_FOR_PLACES
from measure.host.lanes import ONE_LANE, Lanes, lanes_of

# Two lanes are always tried: whether a machine is too small for them is measured, not assumed.
FEWEST = 2


class LoadsDoNotCount(Exception):
    """Loads in lanes were rejected repeatedly; the text states how many lanes there were, and why."""


@dataclass(frozen=True)
class Trial:
    """The result for a number (`count`): the verdict, its reason, the number of rounds made, and the comparisons after
    the last round."""

    count: int
    verdict: str
    reason: str
    rounds: int
    comparisons: tuple[Comparison, ...] = ()


# Measures one round, given how many runs are made at once and the round's number. Raises LoadsDoNotCount.
MeasureRound = Callable[[int, int], Round]


@dataclass(frozen=True)
class Calibration:
    """The result of a search: the largest number (`count`) that disturbs no run, and why it is not larger; the plan
    (`bound`, `error`, `looks`), and all `trials`."""

    at: str
    count: int
    reason: str
    bound: float
    error: float
    looks: tuple[int, ...]
    trials: tuple[Trial, ...]


def search(
    largest: int, measure_round: MeasureRound, announce: Callable[[str], None], named: Callable[[int], str]
) -> Calibration:
    """Find the largest number, up to `largest`, that disturbs no run. `named` describes a number, as in "3 lanes".

    This is a binary search between the largest number known to disturb no run and the smallest number known to be too
    large. It assumes that fewer runs at once disturb each other less.
    """
    trials: list[Trial] = []
    most, fault = 1, largest + 1
    count = largest
    while count > most:
        trial = attempt(count, measure_round, announce, named)
        announce(trial.reason)
        trials.append(trial)
        most, fault = (count, fault) if trial.verdict == EQUIVALENT else (most, count)
        count = (most + fault) // 2
    reason = next((trial.reason for trial in trials if trial.count == most), None) or (
        trials[-1].reason if trials else f"nothing could be tried: {named(FEWEST)} are too many for this machine"
    )
    return Calibration(now_iso(), most, reason, BOUND, ERROR, LOOKS, tuple(trials))


def calibrate(
    cores: Sequence[tuple[int, ...]],
    measure_round: MeasureRound,
    announce: Callable[[str], None],
    material: Mapping[str, Any],
) -> Lanes:
    """Find out how many lanes a machine with these `cores` supports. `material` describes the loads; it is kept with
    the calibration."""
    result = search(most_lanes(len(cores)), measure_round, announce, in_lanes)
    lanes = ONE_LANE if result.count == 1 else Lanes(result.count, lanes_of(result.count, list(cores)))
    return replace(lanes, calibration={**asdict(result), "cores": list(cores), **material})


def in_lanes(count: int) -> str:
    """The number of lanes, in words."""
    return plural("lane", count)


def most_lanes(cores: int) -> int:
    """The number of lanes that is tried first: as many as have cores for all parts of a run (`measure.host.affinity`),
    but at least two if there are two cores."""
    return min(cores, max(FEWEST, cores // CORES_FOR_PLACES))


def attempt(
    count: int,
    measure_round: MeasureRound,
    announce: Callable[[str], None],
    named: Callable[[int], str] = in_lanes,
) -> Trial:
    """Whether `count` runs at once disturb each other."""
    rounds: list[Round] = []
    for look in LOOKS:
        while len(rounds) < look:
            announce(f"{named(count)}: round {len(rounds) + 1} of {LOOKS[-1]} at most")
            try:
                rounds.append(measure_round(count, len(rounds) + 1))
            except LoadsDoNotCount as fault:
                return Trial(count, DISTURBED, f"{named(count)} disturb: {fault}", len(rounds))
        outcome = comparisons(rounds)
        if (result := verdict(outcome)) in (EQUIVALENT, DISTURBED):
            break
    worst = max((one for one in outcome if one.verdict(BOUND) == result), key=lambda one: one.distance)
    reason = _MEANING[result].format(count=named(count), rounds=look)
    return Trial(count, result, f"{reason}: {worst}", look, tuple(outcome))


_SHARE = f"{100 * BOUND:g} %"
_MEANING = {
    EQUIVALENT: f"{{count}} do not disturb each other by more than {_SHARE}, after {{rounds}} rounds; most in",
    DISTURBED: f"{{count}} disturb by more than {_SHARE}, after {{rounds}} rounds; most in",
    OPEN: f"{{count}} may disturb by more than {_SHARE}, even after {{rounds}} rounds; least certain",
}
