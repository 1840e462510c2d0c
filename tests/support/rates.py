"""The frequency of an outcome in many simulated campaigns: its bounds, and a function that prints it."""

import pytest
from scipy import stats

# The probability that a rate is beyond its bound.
BEYOND = 0.05


def upper_bound(count: int, trials: int) -> float:
    """The largest rate at which `count` or fewer in `trials` have probability BEYOND (Clopper and Pearson)."""
    return float(stats.binomtest(count, trials, alternative="less").proportion_ci(1 - BEYOND).high)


def lower_bound(count: int, trials: int) -> float:
    """The smallest rate at which `count` or more in `trials` have probability BEYOND."""
    return 1 - upper_bound(trials - count, trials)


def tell(capsys: pytest.CaptureFixture[str], *cells: object) -> None:
    """Print a measurement, bypassing pytest's capture."""
    with capsys.disabled():
        print(f"\n| {' | '.join(map(str, cells))} |", end="")
