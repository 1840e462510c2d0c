"""Whether runs depend on what they are assumed not to depend on: the load before them, or when they were measured.

Tests are of ranks within sites or of their normal scores (van der Waerden's), so outliers and unequal scatters of sites
neither cause a false alarm nor hide an effect.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, special, stats

from analysis.statistics.ratios import MeanRatio
from analysis.statistics.samples import Array

# The numbers of a factor's levels, 0, 1, …, one for each value.
Codes = NDArray[np.int64]
# A test needs at least this many degrees of freedom for the scatter that no factor explains.
LEAST_FREEDOM = 4
# The share of values below which scatter is rounding.
CONSTANT = 1e-9
# An eigenvalue that is a smaller share of the number of values is rounding.
RANK = 1e-12
# A factor of which the others leave a smaller share is determined by them.
SMALL_EFFECT = 1e-6


@dataclass(frozen=True)
class FactorTest:
    """The F test of a factor: the effect of each level, with mean 0, `f` with (`between`, `within`) degrees of freedom,
    and its p value. NaN if the factor cannot be distinguished from the others, or there are too few values."""

    effects: Array
    f: float = np.nan
    between: int = 0
    within: int = 0
    p: float = np.nan

    def widened(self, mean: MeanRatio) -> MeanRatio:
        """`mean`, a mean of the values, with the error that it has if the levels of the factor, batches of values, are
        the independent observations (batch means: Conway 1963, Some tactical problems in digital simulation)."""
        error = mean.error * np.sqrt(max(1.0, self.f))
        return replace(mean, error=error, freedom=np.asarray(float(self.between)))


def factor_test(values: Array, factor: Codes, others: Sequence[Codes]) -> FactorTest:
    """Whether `values` depend on `factor`, beyond the means of the groups of the `others` (analysis of variance of an
    additive model with unequal numbers; Yates's method of fitting constants)."""
    levels = int(factor.max(initial=-1)) + 1
    nothing = FactorTest(np.full(levels, np.nan))
    if len(values) < 2:
        return nothing
    residuals, number_of_means = without(np.column_stack([values, np.eye(levels)[factor]]), others)
    target, dummies = residuals[:, 0], residuals[:, 1:]
    # A level that the other factors determine leaves only rounding errors.
    between = int(np.linalg.matrix_rank(dummies, tol=SMALL_EFFECT * np.sqrt(len(values))))
    effects = np.linalg.lstsq(dummies, target, rcond=SMALL_EFFECT)[0]
    within = len(values) - number_of_means - between
    explained = float(((dummies @ effects) ** 2).sum())
    residual = float(((target - dummies @ effects) ** 2).sum())
    is_exact = residual <= CONSTANT * float((values**2).mean())
    if between < levels - 1 or not between or within < LEAST_FREEDOM or is_exact:
        return nothing
    f = explained / between / (residual / within)
    return FactorTest(effects - effects.mean(), f, between, within, float(stats.f.sf(f, between, within)))


def without(values: Array, factors: Sequence[Codes]) -> tuple[Array, int]:
    """`values` (one row for each value, any columns) less the means of the groups of all `factors`, and the number of
    independent means. The factor with the most groups is subtracted directly, so the equations are only as many as the
    groups of the others."""
    most, *others = sorted(factors, key=lambda of: int(of.max()), reverse=True)
    groups, sizes = _groups(most), np.bincount(most)
    means = groups.T / np.maximum(1, sizes)[:, None]
    residuals, number = values - groups @ (means @ values), np.count_nonzero(sizes)
    if others:
        dummies = sparse.hstack([_groups(of) for of in others], format="csr")
        dummies = dummies - groups @ (means @ dummies)
        eigenvalues, axes = np.linalg.eigh((dummies.T @ dummies).toarray())
        is_independent = eigenvalues > RANK * len(values)
        axes = axes[:, is_independent] / np.sqrt(eigenvalues[is_independent])
        residuals = residuals - dummies @ (axes @ (axes.T @ (dummies.T @ residuals)))
        number += np.count_nonzero(is_independent)
    return np.asarray(residuals), int(number)


def _groups(of: Codes) -> sparse.csr_array:
    """A row for each value, with 1 in the column of its group."""
    return sparse.csr_array((np.ones(len(of)), of, np.arange(len(of) + 1)), shape=(len(of), int(of.max()) + 1))


def normal_scores(values: Array, groups: Codes) -> Array:
    """The normal score of each value's rank within its group; equal values have equal scores. `values` has no NaN."""
    sizes = np.bincount(groups)
    # Values are ordered by group first, so the ranks of a group follow those of the groups before it.
    places = groups * len(values) + np.unique(values, return_inverse=True)[1]
    ranks = stats.rankdata(places) - (np.cumsum(sizes) - sizes)[groups]
    return np.asarray(special.ndtri((ranks - 0.5) / sizes[groups]))


def carry_over_test(
    logs: Array, previous: Codes, site: Codes, setting: Codes, block: Codes, place: Codes
) -> tuple[FactorTest, Array]:
    """Whether times depend on the protocol of the load before, from the loads of one network.

    `logs`: ln(time). `previous`: the protocol of the load before. `setting`: site and protocol. `place`: in the block.
    Returns the test and the effect of each previous protocol on `logs`, with mean 0.

    The order within a block is random, so what was loaded before is independent of all else, apart from the load's own
    protocol. With two protocols the second load of a block always follows the other protocol; only the first, which
    follows the block before, makes the effect of the previous protocol differ from that of the place.
    """
    residuals = without(logs[:, None], [block, setting])[0][:, 0]
    others = [block, setting, place]
    test = factor_test(normal_scores(residuals, site), previous, others)
    # Outliers would decide the size of an effect, so they are drawn in.
    reach = 3 * stats.median_abs_deviation(residuals, scale="normal")
    return test, factor_test(np.clip(residuals, -reach, reach), previous, others).effects


def wander_test(ratios: Array, site: Codes) -> tuple[FactorTest, float, float]:
    """Whether the log ratios of the blocks of one network, in the order of measuring, wander.

    A ratio that wanders slowly makes batches of successive blocks differ; one that wanders fast makes neighbours alike.
    Returns the test of sqrt(blocks) / 2 batches, but at least four, each of four times as many blocks (with shorter
    ones, ratios that wander slowly would make neighbouring batches alike); the correlation of neighbours, of normal
    scores within sites; and the p value of both together (Bonferroni). NaN if there are too few blocks.
    """
    blocks, scores = len(ratios), normal_scores(ratios, site)
    number = max(4, round(np.sqrt(blocks) / 2))
    batches = factor_test(scores, np.arange(blocks) * number // max(1, blocks), [site])
    residuals = without(scores[:, None], [site])[0][:, 0]
    correlation, p = neighbour_test(residuals, blocks - len(np.unique(site)) - 1)
    # Blocks that are less alike than by chance do not wander.
    one_sided_p = p / 2 if correlation > 0 else 1 - p / 2
    known = [p for p in (batches.p, one_sided_p) if np.isfinite(p)]
    return batches, correlation, min(1.0, len(known) * min(known)) if known else np.nan


def neighbour_test(values: Array, freedom: int) -> tuple[float, float]:
    """The correlation of each value with the one before it, and the two-sided p value of none, by Fisher's z of
    `freedom` + 1 independent pairs; NaN if these are too few, or without scatter."""
    if freedom + 1 < LEAST_FREEDOM or len(values) < 3 or min(np.ptp(values[:-1]), np.ptp(values[1:])) <= CONSTANT:
        return np.nan, np.nan
    correlation = float(np.corrcoef(values[:-1], values[1:])[0, 1])
    z = np.arctanh(np.clip(correlation, -1 + 1e-12, 1 - 1e-12))
    return correlation, float(2 * stats.norm.sf(abs(z) * np.sqrt(max(freedom - 2, 1))))


def signed_ranks_p(differences: Array) -> Array:
    """The two-sided p value of runs of a block that are exchangeable, by Wilcoxon's signed ranks, from their
    `differences` (… x sites x blocks; NaN: unknown). 1 if all known differences are 0, NaN if none is known.

    Ranks are within sites, which are weighted by 1 / (blocks + 1), as in van Elteren's test (1960, On the combination
    of independent two-sample tests of Wilcoxon). The p value is that of a normal distribution whose variance is that of
    random signs on these very ranks, including ties and infinite differences, which hardly change it if they are few.
    """
    is_known = ~np.isnan(differences).all(axis=(-2, -1))
    signs = np.where(differences == 0, np.nan, np.sign(differences))
    sizes = np.where(np.isnan(signs), np.nan, np.abs(differences))
    blocks = (~np.isnan(signs)).sum(axis=-1, keepdims=True)
    ranks = stats.rankdata(sizes, axis=-1, nan_policy="omit") / (blocks + 1)
    total, variance = np.nansum(signs * ranks, axis=(-2, -1)), np.nansum(ranks**2, axis=(-2, -1))
    deviations = np.abs(total) / np.sqrt(np.where(variance > 0, variance, 1))
    return np.asarray(np.where(is_known, 2 * stats.norm.sf(deviations), np.nan))
