"""How often something happens in many simulated campaigns: bounds, and a line for who runs the proof."""

import pytest
from scipy import stats

# With this probability a rate lies beyond its bound.
BEYOND = 0.05


def upper_bound(count: int, trials: int) -> float:
    """The largest rate that brings about `count` or fewer in `trials` with probability BEYOND (Clopper and Pearson)."""
    return float(stats.binomtest(count, trials, alternative="less").proportion_ci(1 - BEYOND).high)


def lower_bound(count: int, trials: int) -> float:
    """The smallest rate that brings about `count` or more in `trials` with probability BEYOND."""
    return 1 - upper_bound(trials - count, trials)


def tell(capsys: pytest.CaptureFixture[str], *cells: object) -> None:
    """Print what was measured, past pytest."""
    with capsys.disabled():
        print(f"\n| {' | '.join(map(str, cells))} |", end="")
