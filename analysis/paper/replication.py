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

    `chance`: how rare a number like the campaign's is: the share of exact repetitions whose number is as far from the
    paper's or farther; for counts, whose two sides are not alike, twice the share that is on the campaign's side. A
    number that does not agree has a `chance` of at most 1 - confidence.
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
    """Hold `ours` of `sites` against the paper's count of `paper_sites`.

    Both are taken for random samples of one kind of sites. The paper's own sites are none: all of them lie nearer to
    its count than this says, as far as they end alike every time; but a part of them may lie farther, since it may be
    just those that the count leaves out. The prediction is beta-binomial, from Jeffreys's prior. `low` and `high` are
    counts of `sites`.
    """
    prediction = stats.betabinom(sites, paper + 0.5, paper_sites - paper + 0.5)
    low, high = prediction.ppf((1 - confidence) / 2), prediction.ppf((1 + confidence) / 2)
    # In each tail with `ours`: no more than this many, no fewer.
    tails = prediction.cdf(ours), prediction.sf(ours - 1)
    return Replication(float(low), float(high), bool(low <= ours <= high), min(1.0, 2 * float(min(tails))))
