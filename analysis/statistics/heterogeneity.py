"""How much sites differ in what a protocol gains, and what that means for a site that was not measured.

The confirmatory family is about the mean over the campaign's own sites (`analysis.statistics.ratios`). Here the sites
count as a sample of sites like them: each has a true log ratio, these scatter with the standard deviation tau, and a
site's location is its true one with the error of its runs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats
from scipy.optimize import brentq
from scipy.special import ndtr
from statsmodels.stats.meta_analysis import combine_effects

from analysis.statistics.hypotheses import Hypotheses, Pair
from analysis.statistics.ratios import block_ratios, degrees_of_freedom, locations
from analysis.statistics.samples import Array, Samples, counts

# With fewer, nothing can be said of a further site.
LEAST_SITES = 3
# A site's variance is drawn to that of all sites, as if this many more blocks had shown that one: the variance of two
# or three blocks says little, and that of blocks with the same ratio (films have a grain) would be 0.
TYPICAL_BLOCKS = 4
# Newton's steps towards Paule and Mandel's tau; 10 are usual.
ITERATIONS = 200
# Values of tau that a prediction weighs.
TAUS = 400


@dataclass(frozen=True)
class SiteRatios:
    """The locations of some sites' log ratios, the variances of their errors, and the freedom of these (an axis each).

    A variance is NaN where no site has two blocks, so that nobody knows what runs scatter.
    """

    centres: Array
    variances: Array
    freedom: Array

    @property
    def are_known(self) -> bool:
        """Whether their errors are."""
        return bool(np.isfinite(self.variances).all())


def heterogeneity(samples: Samples, hypotheses: Hypotheses) -> pd.DataFrame:
    """How much sites differ, for every pair, network and metric with LEAST_SITES sites or more.

    Columns: reference, compared, network, metric, sites; tau (standard deviation between sites of the log ratio,
    Paule and Mandel's), i_squared (share of the scatter of the sites' ratios that is not the runs'), new_low and
    new_high (in which the gain of a further site like these lies). Where no site has two blocks, what the runs scatter
    is not known, and all of these are NaN.
    """
    columns = ["reference", "compared", "network", "metric", "sites", "tau", "i_squared", "new_low", "new_high"]
    rows = []
    for pair, network, metric, names, _, sites in _contrasts(samples, hypotheses):
        if len(names) < LEAST_SITES:
            continue
        numbers = [np.nan] * 4
        if sites.are_known:
            tau_squared, i_squared = between(sites)
            numbers = [np.sqrt(tau_squared), i_squared, *np.expm1(new_site(sites, hypotheses.confidence))]
        rows.append([*pair, network, metric, len(names), *numbers])
    return pd.DataFrame(rows, columns=columns)


def shrunken(samples: Samples, hypotheses: Hypotheses) -> pd.DataFrame:
    """Every site's gain, drawn towards the mean of the sites by as much as its runs are uncertain (empirical Bayes).

    Columns: reference, compared, network, metric, site, blocks (that have both protocols), gain (of the location of its
    log ratios), shrunken with shrunken_low and shrunken_high; these are NaN where no site has two blocks.
    """
    columns = ["reference", "compared", "network", "metric", "site", "blocks", "gain"]
    columns += ["shrunken", "shrunken_low", "shrunken_high"]
    tables = []
    for pair, network, metric, names, blocks, sites in _contrasts(samples, hypotheses):
        estimates = np.expm1([sites.centres, *shrink(sites, hypotheses.confidence)])
        keys = {**pair._asdict(), "network": network, "metric": metric, "site": names, "blocks": blocks}
        tables.append(pd.DataFrame(keys | dict(zip(columns[-4:], estimates, strict=True))))
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=columns)


def between(sites: SiteRatios) -> tuple[float, float]:
    """tau squared and I squared of two sites or more."""
    if not sites.variances.any() or not np.ptp(sites.centres):
        scatter = float(sites.centres.var(ddof=1))
        return scatter, float(scatter > 0)
    combined = combine_effects(sites.centres, sites.variances, method_re="iterated", maxiter=ITERATIONS)
    return float(combined.tau2), max(0.0, float(combined.i2))


def new_site(sites: SiteRatios, confidence: float) -> tuple[float, float]:
    """The interval of the log ratio of a further site, from two sites or more.

    The usual interval takes the estimated tau for the true one, and is then too narrow with few sites or with a tau
    below the error of the runs. So each tau counts by its confidence, which follows from that the sites' scatter,
    weighted with the true tau, has a chi-squared distribution (Nagashima, Noma and Furukawa 2019, Prediction intervals
    for random-effects meta-analysis: a confidence distribution approach).
    """
    centres, variances, size = sites.centres, sites.variances, len(sites.centres)
    mean = float(centres.mean())
    quantiles = _scatter_quantiles(size)
    largest = ((centres - mean) ** 2).sum() / quantiles[0]
    if largest == 0:
        tau_squared = np.zeros(1)
    else:
        grid = largest * np.geomspace(1e-9, 1, TAUS)
        weights = 1 / (variances + grid[:, None])
        weighted_means = (weights @ centres) / weights.sum(axis=1)
        scatters = (weights * (centres - weighted_means[:, None]) ** 2).sum(axis=1)
        tau_squared = np.interp(quantiles, scatters[::-1], grid[::-1])
    spread = np.sqrt(tau_squared + (tau_squared + variances.mean()) / size)
    if not spread.any():
        return mean, mean
    beyond = (1 - confidence) / 2
    reach = brentq(lambda distance: ndtr(-distance / spread).mean() - beyond, 0, 1e3 * spread.max())
    return mean - reach, mean + reach


@cache
def _scatter_quantiles(size: int) -> Array:
    """TAUS quantiles of the weighted scatter of so many sites, which nobody may change."""
    return np.asarray(stats.chi2.ppf((np.arange(TAUS) + 0.5) / TAUS, size - 1))


def shrink(sites: SiteRatios, confidence: float) -> tuple[Array, Array, Array]:
    """Empirical Bayes estimates of the sites' true log ratios, and their intervals' ends; NaN with unknown errors.

    Morris's (1983, Parametric Empirical Bayes Inference, section 5), whose intervals count that tau is itself
    estimated. Three sites or fewer are not drawn at all.
    """
    centres, variances, size = sites.centres, sites.variances, len(sites.centres)
    estimate, squared_error = np.where(np.isfinite(variances), centres, np.nan), variances
    if size > LEAST_SITES and sites.are_known and variances.any():
        total = variances + between(sites)[0]
        drawn = (size - 3) / (size - 1) * variances / total
        distance = centres - centres.mean()
        estimate = centres - drawn * distance
        of_tau = 2 / (size - 3) * drawn**2 * total.mean() / total
        squared_error = variances * (1 - (1 - 1 / size) * drawn) + of_tau * distance**2
    reach = stats.t.ppf((1 + confidence) / 2, sites.freedom) * np.sqrt(squared_error)
    return estimate, estimate - reach, estimate + reach


def site_ratios(ratios: Array) -> SiteRatios:
    """The locations of `ratios` (sites x blocks; each site has one or more), and their errors.

    Each variance is drawn to what all sites together say of a block (TYPICAL_BLOCKS). A site of one block, which has
    none of its own, has that of the others.
    """
    centres, variances = locations(ratios)
    blocks = counts(ratios)
    own_freedom = degrees_of_freedom(blocks)
    if not own_freedom.any():
        return SiteRatios(centres, np.full(len(centres), np.nan), np.full(len(centres), np.nan))
    of_block = np.where(own_freedom > 0, variances * blocks, 0)
    typical = (own_freedom * of_block).sum() / own_freedom.sum()
    drawn = own_freedom * of_block + TYPICAL_BLOCKS * typical
    freedom = own_freedom + min(TYPICAL_BLOCKS, own_freedom.sum())
    return SiteRatios(centres, np.asarray(drawn / (own_freedom + TYPICAL_BLOCKS) / blocks), freedom)


def _contrasts(
    samples: Samples, hypotheses: Hypotheses
) -> Iterator[tuple[Pair, str, str, NDArray[np.object_], NDArray[np.int64], SiteRatios]]:
    """Every pair, network and metric that some site has a block for: names of these sites, their blocks and ratios."""
    names = np.array(samples.sites, dtype=object)
    for pair in samples.measured(hypotheses.comparisons):
        ratios = block_ratios(samples, pair)
        blocks = counts(ratios)
        for n, network in enumerate(samples.networks):
            for m, metric in enumerate(samples.metrics):
                here = blocks[n, :, m] > 0
                if here.any():
                    yield pair, network, metric, names[here], blocks[n, here, m], site_ratios(ratios[n, here, m])
