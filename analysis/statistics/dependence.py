"""Whether runs depend on what they are assumed not to depend on: the load before them, or when they were measured.

Both are an F test of a factor in the presence of other factors (sites, settings, blocks). It is a test of normal scores
of ranks (van der Waerden's) instead of times, so outliers and unequal scatters of sites neither cause a false alarm nor
hide an effect.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import sparse, special, stats
from scipy.sparse.csgraph import connected_components

from analysis.statistics.samples import Array

Codes = NDArray[np.int64]
# A test needs at least this many degrees of freedom for the scatter that no factor explains.
LEAST_FREEDOM = 4
# The means of several factors are subtracted in turn, until none exceeds this share of the values, or for so many
# rounds.
SMALL_MEAN, MOST_ROUNDS = 1e-9, 500
# A factor of which the others leave a smaller share is determined by them.
SMALL_EFFECT = 1e-6
# There are at least so many batches of blocks.
LEAST_BATCHES = 4


@dataclass(frozen=True)
class FactorTest:
    """The F test of a factor: `f` with (`between`, `within`) degrees of freedom, and its p value.

    `effects`: of each level, in the unit of the values, with mean 0. If a factor cannot be told from the others, or
    there are too few values, all are NaN.
    """

    effects: Array
    f: float
    between: int
    within: int
    p: float


def factor_test(values: Array, factor: Codes, others: Sequence[Codes]) -> FactorTest:
    """Whether `values` depend on `factor`, beyond the means of the groups of the `others`.

    All arrays have one element for each value; a factor is the numbers of levels, 0, 1, …. Effects add up (analysis of
    variance of an additive model with unequal numbers, Yates's method of fitting constants).
    """
    levels = int(factor.max(initial=-1)) + 1
    nothing = FactorTest(np.full(levels, np.nan), np.nan, 0, 0, np.nan)
    if len(values) < 2:
        return nothing
    residuals = without(np.column_stack([values, np.eye(levels)[factor]]), others)
    target, dummies = residuals[:, 0], residuals[:, 1:]
    # A level that the other factors determine leaves only rounding errors.
    between = int(np.linalg.matrix_rank(dummies, tol=SMALL_EFFECT * np.sqrt(len(values))))
    effects = np.linalg.lstsq(dummies, target, rcond=SMALL_EFFECT)[0]
    within = len(values) - _rank(others) - between
    explained = float(((dummies @ effects) ** 2).sum())
    residual = float(((target - dummies @ effects) ** 2).sum())
    if between < levels - 1 or not between or within < LEAST_FREEDOM or residual <= SMALL_MEAN * float(values.var()):
        return nothing
    f = explained / between / (residual / within)
    return FactorTest(effects - effects.mean(), f, between, within, float(stats.f.sf(f, between, within)))


def without(values: Array, factors: Sequence[Codes]) -> Array:
    """`values` (one row for each value, any columns) less the means of the groups of all `factors`."""
    residuals = values - values.mean(axis=0)
    sizes = [np.maximum(np.bincount(of), 1)[:, None] for of in factors]
    limit = SMALL_MEAN * float(np.abs(residuals).max(initial=0))
    for _ in range(MOST_ROUNDS):
        largest = 0.0
        for of, size in zip(factors, sizes, strict=True):
            means = np.stack([np.bincount(of, column) for column in residuals.T], axis=1) / size
            residuals -= means[of]
            largest = max(largest, float(np.abs(means).max(initial=0)))
        if largest <= limit or len(factors) == 1:
            break
    return np.asarray(residuals)


def _rank(factors: Sequence[Codes]) -> int:
    """The number of means that `without` subtracts: each factor after the first has one less for each part of the
    values that shares no group with the rest."""
    first, *others = [np.unique(of, return_inverse=True)[1] for of in factors]
    size = int(first.max()) + 1
    number = size
    for other in others:
        nodes = size + int(other.max()) + 1
        graph = sparse.csr_array((np.ones(len(first)), (first, size + other)), shape=(nodes, nodes))
        number += nodes - size - connected_components(graph, directed=False)[0]
    return number


def normal_scores(values: Array, groups: Codes) -> Array:
    """The normal score of each value's rank within its group; equal values have equal scores."""
    series = pd.Series(values).groupby(groups)
    return np.asarray(special.ndtri((series.rank() - 0.5) / series.transform("size")))


def carry_over_test(
    logs: Array, previous: Codes, site: Codes, setting: Codes, block: Codes, place: Codes
) -> tuple[FactorTest, Array]:
    """Whether times depend on the protocol of the load before, from the loads of one network.

    `logs`: ln(time). `previous`: the protocol of the load before each. `site`, `setting` (site and protocol), `block`
    and `place` in the block: their numbers. Returns the test and the effect of each previous protocol on `logs`, with
    mean 0.

    The order within a block is random, so what was loaded before is independent of all else, apart from the load's own
    protocol. With two protocols the second load of a block always follows the other protocol; only the first, which
    follows the block before, makes the effect of the previous protocol differ from that of the place.
    """
    residuals = without(logs[:, None], [block, setting])[:, 0]
    others = [block, setting, place]
    test = factor_test(normal_scores(residuals, site), previous, others)
    # Outliers would decide the size of an effect, so they are drawn in.
    reach = 3 * stats.median_abs_deviation(residuals, scale="normal")
    return test, factor_test(np.clip(residuals, -reach, reach), previous, others).effects


def batch_test(ratios: Array, site: Codes, batch: Codes) -> FactorTest:
    """Whether the ratios of some batches of blocks differ from those of others by more than blocks scatter.

    `ratios`: the log ratio of each block of one network. If batches differ, not the blocks but the batches are
    independent observations (`widened`).
    """
    return factor_test(normal_scores(ratios, site), batch, [site])


def batches(count: int) -> Codes:
    """The batch of each of `count` successive blocks: sqrt(count) / 2 batches, each of four times as many blocks.

    With shorter batches, ratios that wander slowly would make neighbouring batches alike.
    """
    number = max(LEAST_BATCHES, round(np.sqrt(count) / 2))
    return np.asarray(np.arange(count) * number // max(1, count))


def serial_test(ratios: Array, site: Codes) -> tuple[float, float]:
    """The correlation of each block's ratio with that of the block before it, at any site, and the one-sided p value of
    no positive correlation; NaN if there are too few blocks.

    `ratios`: the log ratios of the blocks of one network, in the order of measuring. The correlation is that of normal
    scores within sites. The p value is that of Fisher's z.
    """
    scores = without(normal_scores(ratios, site)[:, None], [site])[:, 0]
    freedom = len(scores) - len(np.unique(site))
    if freedom < LEAST_FREEDOM or np.ptp(scores[:-1]) <= SMALL_MEAN or np.ptp(scores[1:]) <= SMALL_MEAN:
        return float("nan"), float("nan")
    correlation = float(np.corrcoef(scores[:-1], scores[1:])[0, 1])
    return correlation, float(stats.norm.sf(np.arctanh(correlation) * np.sqrt(max(freedom - 3, 1))))


def wander_p(of_batches: float, of_neighbours: float) -> float:
    """The p value of ratios that do not wander, from those of `batch_test` and `serial_test` (Bonferroni).

    A ratio that wanders slowly makes batches differ; one that wanders fast makes neighbours alike.
    """
    known = [p for p in (of_batches, of_neighbours) if np.isfinite(p)]
    return min(1.0, len(known) * min(known)) if known else float("nan")


def widened(error: float, batch: FactorTest) -> tuple[float, int]:
    """The error of a mean over blocks if the batches of `batch` are the independent observations, and its degrees of
    freedom; `error` is the one from blocks (method of batch means: Conway 1963, Some tactical problems in digital
    simulation).
    """
    return error * float(np.sqrt(max(1.0, batch.f))), batch.between
