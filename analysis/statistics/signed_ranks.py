"""Wilcoxon's signed ranks of differences within blocks, combined over sites. A few impossible or infinite differences
hardly change the result."""

import numpy as np
from scipy import stats

from analysis.statistics.samples import Array


def signed_ranks_p(differences: Array) -> Array:
    """The two-sided p value of no difference between the two runs of a block, from `differences` (… x sites x blocks;
    NaN: unknown). 1 if all known differences are 0, NaN if none is known.

    Differences are ranked within each site, and sites are weighted by 1 / (blocks + 1), as in van Elteren's test (1960,
    On the combination of independent two-sample tests of Wilcoxon). The p value is that of a normal distribution whose
    variance is that of random signs on these very ranks, including ties and infinite differences. The test holds if
    both runs of a block are exchangeable.
    """
    is_known = ~np.isnan(differences).all(axis=(-2, -1))
    signs = np.where(differences == 0, np.nan, np.sign(differences))
    sizes = np.where(np.isnan(signs), np.nan, np.abs(differences))
    blocks = (~np.isnan(signs)).sum(axis=-1, keepdims=True)
    ranks = stats.rankdata(sizes, axis=-1, nan_policy="omit") / (blocks + 1)
    total, variance = np.nansum(signs * ranks, axis=(-2, -1)), np.nansum(ranks**2, axis=(-2, -1))
    deviations = np.abs(total) / np.sqrt(np.where(variance > 0, variance, 1))
    return np.asarray(np.where(is_known, 2 * stats.norm.sf(deviations), np.nan))
