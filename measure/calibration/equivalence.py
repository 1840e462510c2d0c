"""Whether runs in lanes take as long as runs that have the machine to themselves: an equivalence test with interim
looks.

Each round times the same quantities under each condition. For two conditions, each round gives one log ratio; their
mean has a Student's t interval. By two one-sided tests (Schuirmann 1987, Journal of Pharmacokinetics and
Biopharmaceutics 15), a quantity is equivalent if its interval lies within the bound. If the interval lies wholly
outside, the lanes disturb. The test is made after fixed numbers of rounds, each time at ERROR divided by the number of
looks (Bonferroni), so repeated looks do not raise the error. Lanes pass only if all quantities are equivalent; such an
intersection-union test needs no further correction (Berger 1982, Technometrics 24).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

# The share by which a run in a lane may be slower or faster. Throughout this project, two ways to measure count as
# equivalent if they differ by less.
BOUND = 0.02
# The largest probability that lanes which disturb by more than BOUND pass the test.
ERROR = 0.05
# The numbers of rounds after which results are tested. Five rounds suffice to recognise a machine that is too small.
# With forty, the interval is narrow enough for BOUND if the times of runs scatter by up to 2 %.
LOOKS = (5, 10, 20, 40)

# The conditions: one run at a time on all cores; one run on a lane's cores; and one run while all other lanes measure,
# too. Where lanes share their cores, the first two are the same, and the second is left out.
WHOLE, ALONE, BESIDE = CONDITIONS = ("whole", "alone", "beside")

EQUIVALENT, DISTURBED, OPEN = "equivalent", "disturbed", "not decided"

# Condition → quantity → its time (ms).
Round = Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Comparison:
    """A `quantity` in a lane with neighbours, compared with the whole machine: their `ratio` with its interval (`low`,
    `high`). If a lane has fewer cores than the machine, the ratio is a product: `of_cores` is the effect of having
    fewer cores, `of_neighbours` that of other lanes being busy."""

    quantity: str
    ratio: float
    low: float
    high: float
    of_cores: float | None = None
    of_neighbours: float | None = None

    def verdict(self, bound: float) -> str:
        """Whether the ratio is 1 to within `bound`: EQUIVALENT, DISTURBED or OPEN."""
        if 1 / (1 + bound) < self.low and self.high < 1 + bound:
            return EQUIVALENT
        return DISTURBED if self.low > 1 + bound or self.high < 1 / (1 + bound) else OPEN

    @property
    def distance(self) -> float:
        """The distance from 1, as a logarithm, of the end of the interval that is farther from 1."""
        return max(abs(float(np.log(self.low))), abs(float(np.log(self.high))))

    def __str__(self) -> str:
        factors = ""
        if self.of_cores is not None:
            factors = (
                f": {self.of_cores:.3f} times since a lane has fewer cores, {self.of_neighbours:.3f} times since it "
                "has neighbours"
            )
        return (
            f"{self.quantity} took {self.ratio:.3f} times as long as with the machine to itself ({self.low:.3f} to "
            f"{self.high:.3f}){factors}"
        )


def comparisons(rounds: Sequence[Round]) -> list[Comparison]:
    """A comparison of each quantity, from two `rounds` or more."""
    return [_comparison(quantity, rounds) for quantity in rounds[0][WHOLE]]


def _comparison(quantity: str, rounds: Sequence[Round]) -> Comparison:
    from scipy import stats  # takes a second to load, so not at the top of the module

    logs = {condition: np.log([one[condition][quantity] for one in rounds]) for condition in rounds[0]}
    differences = logs[BESIDE] - logs[WHOLE]
    mean, error = differences.mean(), stats.sem(differences)
    half = stats.t.ppf(1 - ERROR / len(LOOKS), len(rounds) - 1) * error
    ratio, low, high = (float(np.exp(end)) for end in (mean, mean - half, mean + half))
    if ALONE not in logs:
        return Comparison(quantity, ratio, low, high)
    of_cores, of_neighbours = np.exp([(logs[ALONE] - logs[WHOLE]).mean(), (logs[BESIDE] - logs[ALONE]).mean()])
    return Comparison(quantity, ratio, low, high, float(of_cores), float(of_neighbours))


def verdict(of: Sequence[Comparison], bound: float = BOUND) -> str:
    """The verdict on lanes, from the comparisons of all quantities: DISTURBED if any quantity is, OPEN if any is not
    decided, otherwise EQUIVALENT."""
    verdicts = {one.verdict(bound) for one in of}
    if DISTURBED in verdicts:
        return DISTURBED
    return OPEN if OPEN in verdicts else EQUIVALENT
