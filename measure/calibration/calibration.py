"""Tries numbers of lanes, by bisection, until the largest number that disturbs no run is known."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from base.clock import now_iso
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
    """The result for a number of `lanes`: the verdict, its reason, the number of rounds made, and the comparisons after
    the last round."""

    lanes: int
    verdict: str
    reason: str
    rounds: int
    comparisons: tuple[Comparison, ...] = ()


# Measures one round, given the number of lanes and the round's number. Raises LoadsDoNotCount.
MeasureRound = Callable[[int, int], Round]


def calibrate(
    cores: Sequence[tuple[int, ...]],
    measure_round: MeasureRound,
    announce: Callable[[str], None],
    material: Mapping[str, Any],
) -> Lanes:
    """The lanes that a machine with these `cores` takes; `material` describes for the record what is loaded.

    This is a binary search between the largest number of lanes known to be undisturbed and the smallest number known to
    be too large. It assumes that fewer lanes disturb each other less.
    """
    trials: list[Trial] = []
    most, fault = 1, most_lanes(len(cores)) + 1
    count = fault - 1
    while count > most:
        trial = attempt(count, measure_round, announce)
        announce(trial.reason)
        trials.append(trial)
        most, fault = (count, fault) if trial.verdict == EQUIVALENT else (most, count)
        count = (most + fault) // 2
    reason = next((trial.reason for trial in trials if trial.lanes == most), None) or (
        trials[-1].reason if trials else "this machine has one core for us, which no two lanes can have"
    )
    lanes = ONE_LANE if most == 1 else Lanes(most, lanes_of(most, list(cores)))
    plan = {"cores": list(cores), "bound": BOUND, "error": ERROR, "looks": list(LOOKS)}
    record = {"at": now_iso(), "reason": reason, **plan, **material, "trials": [asdict(trial) for trial in trials]}
    return replace(lanes, calibration=record)


def most_lanes(cores: int) -> int:
    """The number of lanes that is tried first: as many as have cores for all parts of a run (`measure.host.affinity`),
    but at least two if there are two cores."""
    return min(cores, max(FEWEST, cores // CORES_FOR_PLACES))


def attempt(count: int, measure_round: MeasureRound, announce: Callable[[str], None]) -> Trial:
    """Whether `count` lanes disturb each other."""
    rounds: list[Round] = []
    for look in LOOKS:
        while len(rounds) < look:
            announce(f"{count} lanes: round {len(rounds) + 1} of {LOOKS[-1]} at most")
            try:
                rounds.append(measure_round(count, len(rounds) + 1))
            except LoadsDoNotCount as fault:
                return Trial(count, DISTURBED, f"{count} lanes disturb: {fault}", len(rounds))
        outcome = comparisons(rounds)
        if (result := verdict(outcome)) in (EQUIVALENT, DISTURBED):
            break
    worst = max((one for one in outcome if one.verdict(BOUND) == result), key=lambda one: one.distance)
    return Trial(count, result, f"{_MEANING[result].format(count=count, rounds=look)}: {worst}", look, tuple(outcome))


_SHARE = f"{100 * BOUND:g} %"
_MEANING = {
    EQUIVALENT: f"{{count}} lanes do not disturb each other by more than {_SHARE}, after {{rounds}} rounds; most in",
    DISTURBED: f"{{count}} lanes disturb by more than {_SHARE}, after {{rounds}} rounds; most in",
    OPEN: f"{{count}} lanes may disturb by more than {_SHARE}, even after {{rounds}} rounds; least certain",
}
