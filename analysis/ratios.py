"""How much slower one protocol is than another, from the ratios of runs that were measured side by side.

The unit is the log ratio ln(compared / reference) of the two runs of one block: site, machine and moment are the same
for both, so they cancel. A site's ratio is the Hodges-Lehmann location of its blocks' log ratios, which a few runs that
take several times as long hardly move. A mean over sites is over the sites of the campaign themselves: its error is
that of the runs, and it says nothing of other sites (`analysis.heterogeneity` does).
"""

from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy import stats

from analysis.hypotheses import Pair
from analysis.samples import Array, Samples, by_count, counts

# From so many blocks on the location is Hodges and Lehmann's; of fewer it is the mean, since their Walsh averages are
# too few to say how far the location is off.
ROBUST_BLOCKS = 5
# Quantile of the interval from whose length the error of a location is computed.
LENGTH_QUANTILE = 0.95
CALIBRATION_SAMPLES = 5000


@dataclass(frozen=True)
class MeanRatio:
    """The mean over sites of log ratios, its standard error, and the degrees of freedom of that; arrays of one shape.

    The error is NaN where no site has two blocks, and 0 where all blocks of each site have the same ratio.
    """

    centre: Array
    error: Array
    freedom: Array

    def interval(self, confidence: float) -> tuple[Array, Array]:
        """The interval of `centre`."""
        reach = stats.t.ppf((1 + confidence) / 2, self.freedom) * self.error
        return self.centre - reach, self.centre + reach

    def difference_p(self) -> Array:
        """p value, two-sided, of a mean log ratio of 0."""
        return 2 * self._tail(np.abs(self.centre))

    def equivalence_p(self, margin: Array | float) -> Array:
        """p value of a mean log ratio that is `margin` or more from 0 (two one-sided tests; Schuirmann 1987)."""
        return self._tail(margin - np.abs(self.centre))

    def _tail(self, distance: Array) -> Array:
        """Probability of an estimate that is off by `distance` or more in one direction."""
        with np.errstate(divide="ignore", invalid="ignore"):
            p = stats.t.sf(distance / self.error, self.freedom)
        constant = np.where(distance > 0, 0.0, np.where(distance < 0, 1.0, 0.5))
        return np.asarray(np.where(self.error == 0, constant, p))


def block_ratios(samples: Samples, pair: Pair) -> Array:
    """ln(compared / reference) of each block that has both: networks x sites x metrics x blocks, otherwise NaN.

    NaN, too, where a time is 0 or less, which has no logarithm.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.log(samples.of(pair.compared)) - np.log(samples.of(pair.reference))
    return np.asarray(np.where(np.isfinite(ratios), ratios, np.nan))


def locations(ratios: Array) -> tuple[Array, Array]:
    """Location along the last axis, and the variance of its error; NaN without values, or with one, respectively.

    The error of Hodges and Lehmann's is from the length of the interval of Wilcoxon's signed ranks (Lehmann 1963,
    Nonparametric confidence intervals for a shift parameter); that of a mean is the usual one.
    """
    both = by_count(_location_and_variance, ratios, least=1, outputs=(2,))
    return both[..., 0], both[..., 1]


def _location_and_variance(ratios: Array) -> Array:
    blocks = ratios.shape[-1]
    if blocks < ROBUST_BLOCKS:
        variance = ratios.var(axis=-1, ddof=1) / blocks if blocks > 1 else np.full(len(ratios), np.nan)
        return np.stack([ratios.mean(axis=-1), variance], axis=-1)
    centre, error = _hodges_lehmann(ratios)
    return np.stack([centre, (error / _overestimate(blocks)) ** 2], axis=-1)


def _hodges_lehmann(ratios: Array) -> tuple[Array, Array]:
    """Hodges and Lehmann's location of each row of `ratios`, and its error from the length of the interval."""
    blocks = ratios.shape[-1]
    one, other = np.triu_indices(blocks)
    averages = np.sort((ratios[..., one] + ratios[..., other]) / 2, axis=-1)
    expected, deviation = blocks * (blocks + 1) / 4, np.sqrt(blocks * (blocks + 1) * (2 * blocks + 1) / 24)
    place = max(0, int(expected - stats.norm.ppf(LENGTH_QUANTILE) * deviation))
    length = averages[..., -1 - place] - averages[..., place]
    return np.median(averages, axis=-1), length / (2 * (expected - place) / deviation)


@cache
def _overestimate(blocks: int) -> float:
    """By what factor the error from the length is too large for so few blocks: 1.1 for 5, 1.02 for 31.

    It is that of normal ratios; of those with longer tails the error remains somewhat too large.
    """
    centre, error = _hodges_lehmann(np.random.default_rng(blocks).standard_normal((CALIBRATION_SAMPLES, blocks)))
    return float(np.sqrt((error**2).mean()) / centre.std())


def mean_over_sites(ratios: Array) -> MeanRatio:
    """The mean over sites of `ratios` (… x sites x blocks), for all leading axes at once.

    Every site counts once, however many blocks it has; sites without a block do not. A site of one block lends no
    error: then the error is taken as that of a block at the other sites. The degrees of freedom are Satterthwaite's.
    """
    centres, variances = locations(ratios)
    blocks = counts(ratios)
    is_present, has_variance = blocks > 0, np.isfinite(variances)
    sites = is_present.sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        typical = np.nansum(variances * blocks, axis=-1) / has_variance.sum(axis=-1)
        filled = np.where(has_variance, variances, np.where(is_present, typical[..., None], 0))
        total = filled.sum(axis=-1)
        inverse = np.where(has_variance, variances**2 / np.maximum(blocks - 1, 1), 0).sum(axis=-1)
        single = (filled - np.where(has_variance, variances, 0)).sum(axis=-1)
        known = total - single
        # Sites of one block take their variance from the others, and so have these's freedom.
        freedom = np.where(inverse > 0, known**2 / np.where(inverse > 0, inverse, 1), np.inf)
        centre = np.nansum(centres, axis=-1) / np.where(sites > 0, sites, np.nan)
        error = np.sqrt(total) / np.where(sites > 0, sites, np.nan)
    return MeanRatio(np.asarray(centre), np.asarray(np.where(has_variance.any(axis=-1), error, np.nan)), freedom)
