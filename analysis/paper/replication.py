"""Whether a number of the campaign is what a repetition of the paper's measurements would give.

It would not suffice to test whether the campaign's interval contains the paper's number. The paper's number also has an
error and is rounded, so a 95 % interval would contain it in fewer than 95 % of exact repetitions. Here the campaign's
number agrees if it lies in the prediction interval of an exact repetition: if such numbers are not rarer among exact
repetitions than 1 - confidence.
"""

import numpy as np
from scipy import stats


def paper_error(error: float, size: float, paper_size: float) -> float:
    """The standard error of the paper's number, which the paper does not give: that of the campaign's number (`error`),
    which rests on `size` sites, scaled to the paper's sites. Numbers of one site rest on runs instead."""
    return float(error * np.sqrt(size / paper_size))


def standard_error(low: float, high: float, freedom: float, confidence: float) -> float:
    """The standard error of a number with the interval `low` to `high`."""
    return float((high - low) / 2 / stats.t.ppf((1 + confidence) / 2, freedom))


def number_chance(paper: float, ours: float, errors: tuple[float, float], freedom: float, rounding: float) -> float:
    """The share of exact repetitions whose number is at least as far from the paper's as `ours`.

    `errors`: standard errors of the paper's number and of the campaign's, the latter with `freedom` degrees of freedom;
    `rounding`: the largest error of the paper's number from rounding (0.005 for -0.14).
    """
    total = np.sqrt(errors[0] ** 2 + errors[1] ** 2 + rounding**2 / 3)
    distance = abs(ours - paper)
    return float(2 * stats.t.sf(distance / total, freedom) if total else distance == 0)


def count_chance(paper: int, paper_sites: int, ours: int, sites: int) -> float:
    """Twice the share of exact repetitions whose count of `sites` is at least as far from the paper's count of
    `paper_sites` as `ours`, on the same side.

    Both are treated as random samples of one kind of sites. This does not hold for the paper's own sites. If each of
    them has the same outcome every time, a repetition with all of them gives a count nearer to the paper's than
    predicted. A repetition with a part of them may give a count farther from it, since the part may contain mostly
    sites that are not in the paper's count. The prediction is beta-binomial, from Jeffreys's prior.
    """
    prediction = stats.betabinom(sites, paper + 0.5, paper_sites - paper + 0.5)
    # The probability of at most `ours`, and of at least `ours`.
    tails = prediction.cdf(ours), prediction.sf(ours - 1)
    return min(1.0, 2 * float(min(tails)))
