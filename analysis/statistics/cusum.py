"""A sequential test of a series: has its level risen?

The test is a self-starting CUSUM (Hawkins 1987, The Statistician 36). Each value is compared with those before it by
Student's t, so neither the level nor the scatter of the series needs to be known: both come from the series itself, and
how badly a short series knows them is in the t distribution. If nothing changes, and values scatter normally, the t
values are independent, and each becomes an exact standard normal score. Each score less REFERENCE is added to a sum,
which never falls below 0; an alarm is raised when it exceeds a limit. The limit follows from the mean number
of values between two false alarms (Siegmund 1985, Sequential Analysis, formula 2.56).

Scores are cut at MOST_SCORE, so heavy tails, and a single odd value, raise no more alarms than declared.
"""

import numpy as np
from scipy import stats
from scipy.optimize import brentq

from analysis.statistics.samples import Array

# The values after these are tested.
BASELINE = 8
# The test is fastest for a shift of twice this many standard deviations.
REFERENCE = 0.75
MOST_SCORE = 2.5
# A standard deviation (of log ratios) that is smaller counts as this one: if times are whole frames, values may be
# equal.
LEAST_SCATTER = 1e-4
# By how much a sum of single values overshoots a limit more than a continuous one (Siegmund).
OVERSHOOT = 1.166


def scores(values: Array) -> Array:
    """The score of each of `values` (… x number of values); 0 for those of the baseline."""
    number = np.arange(1, values.shape[-1])
    before = np.cumsum(values, axis=-1)[..., :-1] / number
    # Welford's sums of squares, which are exact where the scatter is small beside the level.
    steps = (values[..., 1:] - before) ** 2 * number / (number + 1)
    squares = np.cumsum(steps, axis=-1) - steps
    freedom = np.maximum(1, number - 1)
    scatter = np.maximum(LEAST_SCATTER, np.sqrt(squares / freedom))
    t = np.sqrt(number / (number + 1)) * (values[..., 1:] - before) / scatter
    result = np.zeros(values.shape)
    # The smaller tail, since 1 less a tiny number is 1.
    result[..., 1:] = np.sign(t) * stats.norm.isf(stats.t.sf(np.abs(t), freedom))
    result[..., :BASELINE] = 0.0
    return np.clip(result, -MOST_SCORE, MOST_SCORE)


def sums(of_scores: Array) -> Array:
    """The sum after each score."""
    result = np.zeros(of_scores.shape)
    for place in range(BASELINE, of_scores.shape[-1]):
        result[..., place] = np.maximum(0.0, result[..., place - 1] + of_scores[..., place] - REFERENCE)
    return result


def limit(values_between_alarms: float) -> float:
    """The limit that the sum exceeds, if nothing changes, once in so many values on average."""

    def excess(of_limit: float) -> float:
        exponent = 2 * REFERENCE * (of_limit + OVERSHOOT)
        return float((np.expm1(exponent) - exponent) / (2 * REFERENCE**2) - values_between_alarms)

    return max(0.0, float(brentq(excess, -OVERSHOOT / 2, 100.0)))


def least_values(of_limit: float) -> int:
    """How many values a series has at least when the sum exceeds the limit."""
    return BASELINE + int(of_limit // (MOST_SCORE - REFERENCE)) + 1
