"""When to stop measuring: a rule fixed beforehand, for `RUNS=auto`. It does without files, tables and plots.

Looking at the data again and again and stopping at the first p < 0.01 finds differences that are not there. So the
looks and a bound for each are set before the first run; over all looks together, the probability of stopping at a
difference that does not exist stays at 0.01 (Lan and DeMets 1983, spending in proportion to the runs). At each look
a pair of protocols is decided when Welch's test is beyond the look's bound, or when the look's own interval of the
ratio lies within the equivalence margin. The estimate of a campaign that stopped early exaggerates; report the interval
beside it.

    rule = Rule()
    verdict = decide({"tcp+": {"si": [...]}, "quic": {"si": [...]}}, [("tcp+", "quic")], ["si"], rule)
    verdict.go_on, verdict.next_look     # True, 15: continue until there are 15 runs of each, and ask again
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from analysis.outcomes import EQUIVALENT, FASTER, OPEN, SLOWER

# Looks after so many runs of each protocol; the last is the paper's number of runs.
LOOKS = (5, 10, 15, 20, 25, 31)
# Two-sided p that each look needs, for 0.01 spent in proportion to the runs: a random walk of normal steps crosses
# them for the first time, one after the other, with 0.01 x (share of the runs since the look before)
# (tests/analysis/test_sequential.py computes them anew).
BOUNDS = (0.001613, 0.001894, 0.002257, 0.002646, 0.003046, 0.003744)


@dataclass(frozen=True)
class Rule:
    """Looks (runs of each protocol), the two-sided p bound of each, and the margin (a share) within which two
    protocols are equivalent. Set it before the first run and keep it with the campaign."""

    looks: tuple[int, ...] = LOOKS
    bounds: tuple[float, ...] = BOUNDS
    equivalence_margin: float = 0.05

    def __post_init__(self) -> None:
        if len(self.looks) != len(self.bounds) or list(self.looks) != sorted(set(self.looks)) or self.looks[0] < 2:
            raise ValueError("looks must rise from 2 or more, with one bound each")


@dataclass(frozen=True)
class Decision:
    """The outcome for one pair and metric (faster, slower, equivalent or open), its look (runs of each protocol), and
    the ratio of the geometric means (compared / reference) with its interval at that look's bound."""

    outcome: str
    runs: int
    ratio: float
    low: float
    high: float


@dataclass(frozen=True)
class StoppingVerdict:
    """Whether to continue, the number of runs of each protocol at which to ask again (the present one when all is
    decided or the last look is over), and the decision for each (reference, compared, metric)."""

    go_on: bool
    next_look: int
    decisions: Mapping[tuple[str, str, str], Decision]


def decide(
    runs: Mapping[str, Mapping[str, Sequence[float]]],
    pairs: Iterable[tuple[str, str]],
    metrics: Iterable[str],
    rule: Rule = Rule(),
) -> StoppingVerdict:
    """Decide for one site and network, from its valid runs so far.

    `runs`: protocol → metric → times (ms) in the order measured. `pairs`: (reference, compared), those that must be
    decided. It may be called at any moment: it takes only whole looks, and the decision of an earlier look stands.
    Measuring stops when every pair is decided in every metric, or after the last look.
    """
    questions = [(reference, compared, metric) for reference, compared in pairs for metric in metrics]
    decisions, fewest = {}, rule.looks[-1]
    for reference, compared, metric in questions:
        before, after = (runs.get(name, {}).get(metric, ()) for name in (reference, compared))
        decisions[reference, compared, metric] = sequential_test(before, after, rule)
        fewest = min(fewest, len(before), len(after))
    still_open = any(decision.outcome == OPEN for decision in decisions.values())
    go_on = still_open and fewest < rule.looks[-1]
    next_look = next((look for look in rule.looks if look > fewest), rule.looks[-1])
    return StoppingVerdict(go_on, next_look if go_on else fewest, decisions)


def sequential_test(reference: Sequence[float], compared: Sequence[float], rule: Rule = Rule()) -> Decision:
    """The first decision of `rule` on the times over two protocols, in the order measured; open, with the last
    look's interval, when there is none yet. Times that are not positive decide nothing."""
    decision = Decision(OPEN, 0, math.nan, 0.0, math.inf)
    for look, bound in zip(rule.looks, rule.bounds, strict=True):
        if min(len(reference), len(compared)) < look:
            break
        decision = _test_at_look(reference[:look], compared[:look], bound, rule.equivalence_margin)
        if decision.outcome != OPEN:
            break
    return decision


def _test_at_look(reference: Sequence[float], compared: Sequence[float], bound: float, margin: float) -> Decision:
    x, y = np.asarray(reference, dtype=float), np.asarray(compared, dtype=float)
    if not (x > 0).all() or not (y > 0).all():
        return Decision(OPEN, len(x), math.nan, 0.0, math.inf)
    x, y = np.log(x), np.log(y)
    errors = np.array([x.var(ddof=1) / len(x), y.var(ddof=1) / len(y)])
    centre, error = float(y.mean() - x.mean()), math.sqrt(errors.sum())
    if error > 0:
        # Welch and Satterthwaite's degrees of freedom.
        freedom = errors.sum() ** 2 / (errors**2 / np.array([len(x) - 1, len(y) - 1])).sum()
        reach = -float(special.stdtrit(freedom, bound / 2)) * error
    else:
        reach = 0.0  # all times are identical: simulated, or rounded by the clock
    low, high = centre - reach, centre + reach
    if -math.log1p(margin) < low and high < math.log1p(margin) and (low <= 0 <= high or reach == 0 == centre):
        outcome = EQUIVALENT
    elif high < 0:
        outcome = FASTER
    elif low > 0:
        outcome = SLOWER
    else:
        outcome = OPEN
    return Decision(outcome, len(x), *(math.exp(value) for value in (centre, low, high)))
