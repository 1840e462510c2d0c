"""Whether a number of the campaign is what a repetition of the paper's measurements would give.

That the campaign's interval holds the paper's number is no test of it: the paper's number has an error of its own and
is rounded, so fewer of exact repetitions agree than the interval's confidence says. Here the campaign's number is held
against a prediction interval: where that of an exact repetition lies, with the given confidence.
"""

from dataclasses import dataclass

import numpy as np
from scipy import stats


@dataclass(frozen=True)
class Replication:
    """Where a repetition's number lies (`low` to `high`), and whether the campaign's `agrees`.

    `chance`: the share of exact repetitions whose number is as far from the paper's as the campaign's, or farther. What
    does not agree has less than 1 - confidence.
    """

    low: float
    high: float
    agrees: bool
    chance: float


def paper_error(error: float, size: float, paper_size: float) -> float:
    """The standard error of the paper's number, which it does not tell: that of the campaign's, of the paper's size.

    `error`: of the campaign's number, which rests on `size` sites (or runs, of a number of one site), as the paper's on
    `paper_size`.
    """
    return float(error * np.sqrt(size / paper_size))


def standard_error(low: float, high: float, freedom: float, confidence: float) -> float:
    """The standard error of a number with the interval `low` to `high`."""
    return float((high - low) / 2 / stats.t.ppf((1 + confidence) / 2, freedom))


def of_number(
    paper: float, ours: float, errors: tuple[float, float], freedom: float, rounding: float, confidence: float
) -> Replication:
    """Hold the campaign's number `ours` against the paper's.

    `errors`: standard errors of the paper's number and of the campaign's, the latter with `freedom` degrees of freedom;
    `rounding`: what the paper's may be off since it is rounded (0.005 of -0.14).
    """
    total = np.sqrt(errors[0] ** 2 + errors[1] ** 2 + rounding**2 / 3)
    reach = float(stats.t.ppf((1 + confidence) / 2, freedom) * total)
    distance = abs(ours - paper)
    chance = 2 * stats.t.sf(distance / total, freedom) if total else float(distance == 0)
    return Replication(paper - reach, paper + reach, distance <= reach, float(chance))


def of_count(paper: int, paper_sites: int, ours: int, sites: int, confidence: float) -> Replication:
    """Hold `ours` of `sites` against the paper's count of `paper_sites`, both a sample of sites like them.

    The prediction is beta-binomial, from Jeffreys's prior. `low` and `high` are counts of `sites`. With the paper's own
    sites they lie nearer than this says.
    """
    prediction = stats.betabinom(sites, paper + 0.5, paper_sites - paper + 0.5)
    low, high = prediction.ppf((1 - confidence) / 2), prediction.ppf((1 + confidence) / 2)
    probabilities = prediction.pmf(np.arange(sites + 1))
    as_far = probabilities <= probabilities[ours] * (1 + 1e-9)
    return Replication(float(low), float(high), bool(low <= ours <= high), float(probabilities[as_far].sum()))
