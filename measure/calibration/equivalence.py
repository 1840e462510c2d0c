"""Whether runs in lanes take as long as runs that have the machine to themselves: a test of equivalence, in looks.

In each round the same is timed under each condition. The logarithms of the ratios of two conditions, one a round, have
a mean, and that an interval of Student's t. By two one-sided tests (Schuirmann 1987, Journal of Pharmacokinetics and
Biopharmaceutics 15) a quantity is equivalent when its interval is within the bound; when it is beyond, lanes disturb.
It is looked at after fixed numbers of rounds, each time at ERROR by the number of looks (Bonferroni), so that to look
often finds no more than to look once. All quantities must be equivalent, which needs no further correction: that all
of them are is the claim (intersection and union, Berger 1982, Technometrics 24).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

# The share by which a run in a lane may take more or less time. Two ways to measure count as equivalent within it,
# throughout this project.
BOUND = 0.02
# The largest probability with which lanes that disturb by more than BOUND may be taken for lanes that do not.
ERROR = 0.05
# The numbers of rounds after which results are tested. Five suffice to recognise a machine that is too small; with
# forty, a run-to-run deviation of up to 2 % is small enough for the bound.
LOOKS = (5, 10, 20, 40)

# The conditions: a run at a time, on all cores; the same on those of a lane; and while all other lanes measure, too.
WHOLE, ALONE, BESIDE = CONDITIONS = ("whole", "alone", "beside")

EQUIVALENT, DISTURBED, OPEN = "equivalent", "disturbed", "not decided"

# Condition → quantity → what it took (ms).
Round = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Comparison:
    """The `ratio` of a `quantity` in a lane beside others to that on the whole machine, with its interval; and its two
    factors: `of_cores`, by a lane's cores alone, and `of_neighbours`."""

    quantity: str
    ratio: float
    low: float
    high: float
    of_cores: float
    of_neighbours: float

    def verdict(self, bound: float) -> str:
        """Whether the ratio is 1 to within `bound`: EQUIVALENT, DISTURBED or OPEN."""
        if 1 / (1 + bound) < self.low and self.high < 1 + bound:
            return EQUIVALENT
        return DISTURBED if self.low > 1 + bound or self.high < 1 / (1 + bound) else OPEN

    @property
    def distance(self) -> float:
        """How far the end of the interval that is farther from 1 is from it, as a logarithm."""
        return max(abs(float(np.log(self.low))), abs(float(np.log(self.high))))

    def __str__(self) -> str:
        return (
            f"{self.quantity} took {self.ratio:.3f} times as long as with the machine to itself ({self.low:.3f} to "
            f"{self.high:.3f}): {self.of_cores:.3f} times since a lane has fewer cores, {self.of_neighbours:.3f} times "
            "since it has neighbours"
        )


def comparisons(rounds: Sequence[Round]) -> list[Comparison]:
    """A comparison of each quantity, from two `rounds` or more."""
    return [_comparison(quantity, rounds) for quantity in rounds[0][WHOLE]]


def _comparison(quantity: str, rounds: Sequence[Round]) -> Comparison:
    from scipy import stats  # it takes a second to load, also where nothing is compared

    whole, alone, beside = (np.log([one[condition][quantity] for one in rounds]) for condition in CONDITIONS)
    differences = beside - whole
    mean, error = differences.mean(), stats.sem(differences)
    half = stats.t.ppf(1 - ERROR / len(LOOKS), len(rounds) - 1) * error
    low, high = np.exp([mean - half, mean + half])
    of_cores, of_neighbours = np.exp([(alone - whole).mean(), (beside - alone).mean()])
    return Comparison(quantity, float(np.exp(mean)), float(low), float(high), float(of_cores), float(of_neighbours))


def verdict(of: Sequence[Comparison], bound: float = BOUND) -> str:
    """Whether lanes disturb, by the comparisons of all quantities."""
    verdicts = {one.verdict(bound) for one in of}
    if DISTURBED in verdicts:
        return DISTURBED
    return OPEN if OPEN in verdicts else EQUIVALENT
