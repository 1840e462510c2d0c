"""Whether a number of the campaign is what a repetition of the paper's measurements would give.

It would not suffice to test whether the campaign's interval contains the paper's number. The paper's number also has an
error and is rounded, so a 95 % interval would contain it in fewer than 95 % of exact repetitions. Here the campaign's
number is compared with a prediction interval, in which an exact repetition's number lies with the given confidence.
"""

from dataclasses import dataclass

import numpy as np
from scipy import stats


@dataclass(frozen=True)
class Replication:
    """The interval of a repetition's number (`low` to `high`), and whether the campaign's number `agrees`.

    `chance` is how rare a number like the campaign's is: the share of exact repetitions whose number is at least as far
    from the paper's. For counts, whose two sides differ, it is twice the share on the campaign's side. A number that
    does not agree has a `chance` of at most 1 - confidence.
    """

    low: float
    high: float
    agrees: bool
    chance: float


def paper_error(error: float, size: float, paper_size: float) -> float:
    """The standard error of the paper's number, which the paper does not give: the campaign's, scaled to the paper's
    size.

    `error` is that of the campaign's number, which rests on `size` sites; the paper's number rests on `paper_size`
    sites. Numbers of one site rest on runs instead.
    """
    return float(error * np.sqrt(size / paper_size))


def standard_error(low: float, high: float, freedom: float, confidence: float) -> float:
    """The standard error of a number with the interval `low` to `high`."""
    return float((high - low) / 2 / stats.t.ppf((1 + confidence) / 2, freedom))


def of_number(
    paper: float, ours: float, errors: tuple[float, float], freedom: float, rounding: float, confidence: float
) -> Replication:
    """Compare the campaign's number `ours` with the paper's.

    `errors`: standard errors of the paper's number and of the campaign's, the latter with `freedom` degrees of freedom;
    `rounding`: the largest error of the paper's number from rounding (0.005 for -0.14).
    """
    total = np.sqrt(errors[0] ** 2 + errors[1] ** 2 + rounding**2 / 3)
    reach = float(stats.t.ppf((1 + confidence) / 2, freedom) * total)
    distance = abs(ours - paper)
    chance = 2 * stats.t.sf(distance / total, freedom) if total else float(distance == 0)
    return Replication(paper - reach, paper + reach, distance <= reach, float(chance))


def of_count(paper: int, paper_sites: int, ours: int, sites: int, confidence: float) -> Replication:
    """Compare `ours` of `sites` with the paper's count of `paper_sites`.

    Both are treated as random samples of one kind of sites. This does not hold for the paper's own sites. If each of
    them has the same outcome every time, a repetition with all of them gives a count nearer to the paper's than
    predicted. A repetition with a part of them may give a count farther from it, since the part may contain mostly
    sites that are not in the paper's count. The prediction is beta-binomial, from Jeffreys's prior. `low` and `high`
    are counts of `sites`.
    """
    prediction = stats.betabinom(sites, paper + 0.5, paper_sites - paper + 0.5)
    low, high = prediction.ppf((1 - confidence) / 2), prediction.ppf((1 + confidence) / 2)
    # The probability of at most `ours`, and of at least `ours`.
    tails = prediction.cdf(ours), prediction.sf(ours - 1)
    return Replication(float(low), float(high), bool(low <= ours <= high), min(1.0, 2 * float(min(tails))))
