"""The mean of all runs like those that were measured: its estimate and its interval."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy import special


@dataclass(frozen=True)
class Estimate:
    """A mean over `runs` runs, and the ends of its interval, which are NaN if there is none."""

    mean: float
    low: float
    high: float
    runs: int

    @property
    def has_interval(self) -> bool:
        """Whether the runs show how far off the mean may be."""
        return math.isfinite(self.low)

    @property
    def reaches(self) -> tuple[float, float]:
        """How far the interval extends below and above the mean; 0 if there is none."""
        return (self.mean - self.low, self.high - self.mean) if self.has_interval else (0.0, 0.0)


def over_runs(
    values: Iterable[float], confidence: float, bounds: tuple[float, float] = (-math.inf, math.inf)
) -> Estimate:
    """The mean of `values`, one for each run, and Student's interval, cut off at the possible values (`bounds`).

    A single run, or runs that are all equal, say nothing about the scatter and give no interval.
    """
    array = np.fromiter(values, dtype=float)
    runs = len(array)
    mean = float(array.mean()) if runs else math.nan
    # The tolerance is for rounding, which may hide that all values are equal.
    if runs < 2 or np.ptp(array) <= 1e-12 * np.abs(array).max():
        return Estimate(mean, math.nan, math.nan, runs)
    reach = special.stdtrit(runs - 1, (1 + confidence) / 2) * array.std(ddof=1) / math.sqrt(runs)
    return Estimate(mean, max(bounds[0], float(mean - reach)), min(bounds[1], float(mean + reach)), runs)
