"""Shares of time and probabilities of transitions over several runs, with intervals.

Runs are the repeated unit, so each counts once: the estimate is the mean over runs of each run's own share, which
covers all its connections, weighted by their time. The spells within a run depend on each other, so counting them would
overstate the precision.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from analysis.statistics.intervals import Estimate, over_runs
from studies.states.series import Spell, probabilities, shares, transitions

# The connections of a run, each as its spells.
Connections = Sequence[Sequence[Spell]]


def share_estimates(runs: Sequence[Connections], confidence: float) -> dict[str, Estimate]:
    """State → its share of time, over the runs with any time in a state; the largest first."""
    of_runs = [of_run for of_run in map(shares, runs) if of_run]
    states = dict.fromkeys(state for of_run in of_runs for state in of_run)
    estimates = {
        state: over_runs((of_run.get(state, 0.0) for of_run in of_runs), confidence, (0, 1)) for state in states
    }
    return dict(sorted(estimates.items(), key=lambda entry: -entry[1].mean))


def probability_estimates(runs: Sequence[Connections], confidence: float) -> dict[tuple[str, str], Estimate]:
    """Transition → its share among the transitions that leave the same state, over the runs in which that state was
    left."""
    of_runs = [probabilities(transitions(run)) for run in runs]
    return {
        (before, after): over_runs(
            (of_run.get((before, after), 0.0) for of_run in of_runs if _leaves(of_run, before)), confidence, (0, 1)
        )
        for before, after in transition_counts(runs)
    }


def transition_counts(runs: Sequence[Connections]) -> Counter[tuple[str, str]]:
    """Transition → how often it occurred, in all runs together."""
    return sum(map(transitions, runs), Counter())


def _leaves(of_run: Mapping[tuple[str, str], float], state: str) -> bool:
    return any(before == state for before, _ in of_run)
