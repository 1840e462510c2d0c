"""Tests of a campaign that is looked at several times: how much of its error each look may spend.

A report can be read while the campaign is measured, a campaign may end as soon as it is decided, and its number of runs
may be raised. Each of these looks is another chance of a false verdict. They are after fixed numbers of blocks, so they
do not depend on results, and a spending function gives each its part of the error (Lan and DeMets 1983, Discrete
sequential boundaries for clinical trials). So verdicts hold however often the report is read, and wherever the campaign
ends. The error that is spent by the time t, in parts of the planned blocks, is that of Kim and DeMets (1987) with the
power 2 and 4/5 of the error; the last fifth is for runs beyond the plan. Early looks spend little, so the plan's last
look keeps 0.28 to 0.8 of the error, and a large difference can still be decided early.

All errors and p values here are one-sided.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy import optimize, special

from analysis.statistics.exchange import LEAST_BLOCKS
from analysis.statistics.ratios import ROBUST_BLOCKS
from analysis.statistics.samples import Array

# The numbers of blocks of every site after which there are looks; each planned number of runs is a look as well. A plan
# of few blocks that cannot end early has early looks as well, for those who read its report before its end.
LOOKS, EARLY_LOOKS = (5, 10, 15, 20, 25), (2, 3, 4)
# From this number of blocks on, the level of a plan's last look hardly changes.
FAR = 200
# The part of the error for the planned blocks.
PLANNED_SHARE = 0.8
# Levels are computed for these errors, and interpolated between them.
_ERRORS = np.geomspace(1e-12, 0.499, 24)
# Points of the density of a score that has crossed no level, and how many deviations it reaches.
_POINTS, _REACH = 241, 9.0


@dataclass(frozen=True)
class Looks:
    """The looks at a campaign.

    `blocks`: the number of blocks of every site at each look, ascending. `planned`: how many of them were planned
    before the first run. `may_end`: whether the campaign may end at any look because of its results. `exchanges`:
    whether the plan is tested by exchanges (`analysis.statistics.exchange`) at looks with few blocks.
    """

    blocks: tuple[int, ...]
    planned: int
    may_end: bool = False
    exchanges: bool = False

    def level(self, look: int, error: float) -> float:
        """The level of the test at the look number `look`, of an `error` over all looks."""
        row = _table(self.blocks, self.planned)[look]
        return float(np.exp(np.interp(np.log(error), np.log(_ERRORS), row)))

    def p(self, p_values: Sequence[Array]) -> Array:
        """The p value of all looks together, from those of each look (NaN where it was not reached).

        It is the smallest error for which a test at one of the looks reaches its level; 1 if it were 0.5 or more, and
        NaN without a p value.
        """
        errors = []
        for p, row in zip(p_values, _table(self.blocks, self.planned), strict=True):
            with np.errstate(divide="ignore"):
                errors.append(np.exp(np.interp(np.log(p), row, np.log(_ERRORS), right=0.0)))
        return np.asarray(np.fmin.reduce(errors))


def looks_of_plan(planned: Sequence[int], sites: int, *, may_end: bool = False) -> Looks:
    """The looks of a campaign of this number of `sites` with these `planned` numbers of runs: first the declared one,
    then any to which it was changed."""
    most, first = max(planned), planned[0]
    exchanges = first < ROBUST_BLOCKS and sites * first >= LEAST_BLOCKS
    looks = LOOKS if may_end or first >= ROBUST_BLOCKS else EARLY_LOOKS + LOOKS
    # One block is no evidence, so a look at it spends nothing.
    blocks = [blocks for blocks in sorted({*looks, *planned}) if 2 <= blocks <= most]
    return Looks(tuple(blocks or planned[:1]), first, may_end or len(set(planned)) > 1, exchanges)


def spent(time: float) -> float:
    """The share of the error that is spent by `time`, in parts of the planned blocks; 1 would be endless blocks."""
    return PLANNED_SHARE * time**2 if time <= 1 else 1 - (1 - PLANNED_SHARE) / time


@cache
def levels(looks: tuple[int, ...], planned: int, error: float) -> tuple[float, ...]:
    """The level of the test at each of `looks`, so that the tests at all looks err in `error` of campaigns together.

    The tests' scores are taken for those of a Brownian motion: after n blocks normal with variance n, and with
    independent increments.
    """
    result = []
    # The scores that have crossed no level so far (the motion starts at 0), and how probable each is.
    points, weights = np.zeros(1), np.ones(1)
    before = 0.0
    for time in (blocks / planned for blocks in looks):
        deviation, step = np.sqrt(time), np.sqrt(time - before)
        due = error * (spent(time) - spent(before))

        def surplus(bound: float, step: float = step, due: float = due) -> float:
            return float(weights @ special.ndtr((points - bound) / step)) - due  # noqa: B023 - called at once

        bound = optimize.brentq(surplus, -_REACH * deviation, 4 * _REACH * deviation)
        grid = np.linspace(-_REACH * deviation, bound, _POINTS)
        simpson = np.r_[1, np.tile([4, 2], _POINTS // 2)[:-1], 1] * (grid[1] - grid[0]) / 3
        density = np.exp(-(((grid[:, None] - points) / step) ** 2) / 2) / (step * np.sqrt(2 * np.pi)) @ weights
        points, weights = grid, simpson * density
        result.append(float(special.ndtr(-bound / deviation)))
        before = time
    return tuple(result)


@cache
def last_level(planned: int, error: float) -> float:
    """The level of the test at the last look of a plan of `planned` blocks that is not raised."""
    looks = looks_of_plan([min(planned, FAR)], 1)
    return levels(looks.blocks, looks.planned, error)[-1]


@cache
def _table(looks: tuple[int, ...], planned: int) -> Array:
    """The logarithm of each look's level for each of _ERRORS: looks x errors."""
    return np.log([levels(looks, planned, float(error)) for error in _ERRORS]).T
