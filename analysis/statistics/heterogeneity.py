"""How much sites differ in a protocol's gain, and the consequence for a site that was not measured.

The confirmatory family is about the mean over the campaign's own sites (`analysis.statistics.ratios`). Here the sites
count as a sample of sites like them. Each has a true log ratio; the true ratios scatter with the standard deviation
tau. A site's location is its true log ratio plus the error of its runs.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from scipy.optimize import brentq
from scipy.special import ndtr, stdtrit
from statsmodels.stats.meta_analysis import combine_effects

from analysis.statistics.contrast_table import holm
from analysis.statistics.hypotheses import Hypotheses
from analysis.statistics.ratios import SAME, block_ratios, chi_squared_quantiles, locations
from analysis.statistics.samples import OVER_SITES, Array, Samples, counts

# With fewer sites, nothing can be said about a further site.
LEAST_SITES = 3
# A site's variance is drawn towards that of all sites, as if the site had this many more blocks with the common
# variance. Two or three blocks say little about a variance, and blocks with the same ratio (times are whole frames)
# would have a variance of 0.
TYPICAL_BLOCKS = 4
# The scatter of sites is worth a word only if more than this share of it does not come from the runs (Higgins and
# Thompson's I squared).
DIFFERING_SHARE = 0.5
# The most of Newton's steps towards Paule and Mandel's tau; 10 are usual.
ITERATIONS = 200
# The number of values of tau that a prediction weighs.
TAUS = 400
SHRUNKEN = ["gain", "shrunken", "shrunken_low", "shrunken_high"]


@dataclass(frozen=True)
class SiteRatios:
    """Arrays over sites: the locations of their log ratios, the variances of their errors (NaN if no site has two
    blocks, so that the scatter of the runs is unknown), and the variances' degrees of freedom. `freedom_of_all`: those
    of all variances together, which are fewer than their sum if they were drawn towards each other."""

    centres: Array
    variances: Array
    freedom: Array
    freedom_of_all: float = float("inf")

    @property
    def are_known(self) -> bool:
        """Whether the errors of the locations are known."""
        return bool(np.isfinite(self.variances).all())


def heterogeneity(samples: Samples, hypotheses: Hypotheses) -> pd.DataFrame:
    """How much sites differ, for every pair, network and metric with at least LEAST_SITES sites.

    Columns: OVER_SITES, sites; tau (the standard deviation between sites of the log ratio, Paule and Mandel's),
    i_squared (the share of the scatter of the sites' ratios that does not come from the runs), alike_p; faster (how
    many sites are faster), least_gain and most_gain (of a site; these three from the shrunken gains); new_low and
    new_high (the interval of the gain of a further site like these). All but sites are NaN if no site has two blocks.
    """
    columns = [*OVER_SITES, "sites", "tau", "i_squared", "alike_p", "faster", "least_gain", "most_gain"]
    columns += ["new_low", "new_high"]
    rows = []
    for key, names, _, sites in _contrasts(samples, hypotheses):
        if len(names) < LEAST_SITES:
            continue
        numbers = [np.nan] * 8
        if sites.are_known:
            tau_squared, i_squared = between(sites)
            drawn = np.expm1(shrink(sites, hypotheses.confidence)[0])
            numbers = [np.sqrt(tau_squared), i_squared, alike_p(sites), (drawn < 0).sum(), drawn.min(), drawn.max()]
            numbers += [*np.expm1(new_site(sites, hypotheses.confidence))]
        rows.append([*key, len(names), *numbers])
    return pd.DataFrame(rows, columns=columns)


def differing(table: pd.DataFrame, hypotheses: Hypotheses) -> pd.DataFrame:
    """The rows of the table of `heterogeneity` on those contrasts of the family whose sites are shown to differ: most
    of their scatter does not come from the runs (I squared above DIFFERING_SHARE), and they are not all alike (alike_p,
    by Holm's correction for the family, below the declared threshold)."""
    pairs = pd.MultiIndex.from_frame(table[["reference", "compared"]]).isin(hypotheses.family)
    rows = table[pairs & table["metric"].isin(hypotheses.family_metrics)]
    is_shown = holm(rows["alike_p"].to_numpy(dtype=float)) < hypotheses.significant_p
    return rows[is_shown & (rows["i_squared"] > DIFFERING_SHARE)]


def shrunken(samples: Samples, hypotheses: Hypotheses) -> pd.DataFrame:
    """Every site's gain (of the location of its log ratios), drawn towards the mean of the sites according to the
    uncertainty of its runs (empirical Bayes).

    Columns: OVER_SITES, site, blocks (that have both protocols), SHRUNKEN; all but gain are NaN if no site has two
    blocks.
    """
    columns = [*OVER_SITES, "site", "blocks", *SHRUNKEN]
    rows: list[tuple[Any, ...]] = []
    for key, names, blocks, sites in _contrasts(samples, hypotheses):
        estimates = np.expm1([sites.centres, *shrink(sites, hypotheses.confidence)])
        rows += [(*key, *row) for row in zip(names, blocks, *estimates, strict=True)]
    return pd.DataFrame(rows, columns=columns)


def between(sites: SiteRatios) -> tuple[float, float]:
    """tau squared and I squared of two sites or more."""
    if not sites.variances.any() or not np.ptp(sites.centres):
        scatter = float(sites.centres.var(ddof=1))
        return scatter, float(scatter > 0)
    combined = combine_effects(sites.centres, sites.variances, method_re="iterated", maxiter=ITERATIONS)
    return float(combined.tau2), max(0.0, float(combined.i2))


def alike_p(sites: SiteRatios) -> float:
    """The p value of two sites or more that all have the same true log ratio.

    Cochran's Q, the weighted scatter of the sites around their weighted mean. A chi-squared distribution takes the
    errors of the sites as known; of few blocks they are not, and sites that are alike would differ at 1 % in 5 of 100
    campaigns (ten sites, three blocks). So Q is scaled and compared with an F distribution (Welch 1951, On the
    comparison of several mean values: an alternative approach).
    """
    centres, variances, size = sites.centres, sites.variances, len(sites.centres)
    if np.ptp(centres) < SAME:
        return 1.0
    if not variances.all():
        return 0.0
    weights = 1 / variances
    shares = weights / weights.sum()
    q = float((weights * (centres - shares @ centres) ** 2).sum())
    # Errors that are known exactly make the scale 1 and the degrees of freedom infinite.
    unknown = max(1e-9, float(((1 - shares) ** 2 / sites.freedom).sum()))
    scale = 1 + 2 * (size - 2) / (size**2 - 1) * unknown
    freedom = min((size**2 - 1) / (3 * unknown), sites.freedom_of_all)
    return float(stats.f.sf(q / (size - 1) / scale, size - 1, freedom))


def new_site(sites: SiteRatios, confidence: float) -> tuple[float, float]:
    """The interval of the log ratio of a further site, from two sites or more.

    An interval that takes the estimated tau for the true one is too narrow if sites are few or if tau is below the
    error of the runs. So this one weighs each tau by its confidence, which follows from a chi-squared distribution:
    that of the sites' scatter, weighted with the true tau (Nagashima, Noma and Furukawa 2019, Prediction intervals for
    random-effects meta-analysis: a confidence distribution approach).
    """
    centres, variances, size = sites.centres, sites.variances, len(sites.centres)
    mean = float(centres.mean())
    quantiles = chi_squared_quantiles((np.arange(TAUS) + 0.5) / TAUS, size - 1)
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


def shrink(sites: SiteRatios, confidence: float) -> tuple[Array, Array, Array]:
    """Empirical Bayes estimates of the sites' true log ratios, and the ends of their intervals, which allow for tau
    being an estimate (Morris 1983, Parametric Empirical Bayes Inference, section 5); NaN if errors are unknown.

    With three sites or fewer, estimates are not drawn towards the mean.
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
    reach = stdtrit(sites.freedom, (1 + confidence) / 2) * np.sqrt(squared_error)
    return estimate, estimate - reach, estimate + reach


def site_ratios(ratios: Array) -> SiteRatios:
    """The locations of `ratios` (sites x blocks; each site has at least one block), and their errors.

    Each variance is drawn towards the variance of a block over all sites (TYPICAL_BLOCKS). A site with one block has no
    variance of its own and gets that of the others.
    """
    centres, variances = locations(ratios)
    blocks = counts(ratios)
    own_freedom = blocks - 1
    if not own_freedom.any():
        return SiteRatios(centres, variances, np.full(len(centres), np.nan))
    of_block = np.where(own_freedom > 0, variances * blocks, 0)
    typical = (own_freedom * of_block).sum() / own_freedom.sum()
    drawn = own_freedom * of_block + TYPICAL_BLOCKS * typical
    freedom = own_freedom + min(TYPICAL_BLOCKS, own_freedom.sum())
    squared_errors = np.asarray(drawn / (own_freedom + TYPICAL_BLOCKS) / blocks)
    return SiteRatios(centres, squared_errors, freedom, float(own_freedom.sum()))


def _contrasts(samples: Samples, hypotheses: Hypotheses) -> Iterator[tuple[tuple[str, ...], Array, Array, SiteRatios]]:
    """Every pair, network and metric (OVER_SITES) for which some site has a block, with arrays over these sites: their
    names, their numbers of blocks, and their ratios."""
    names = np.array(samples.sites, dtype=object)
    for pair in samples.measured(hypotheses.comparisons):
        ratios = block_ratios(samples, pair)
        blocks = counts(ratios)
        for (n, network), (m, metric) in product(enumerate(samples.networks), enumerate(samples.metrics)):
            if (here := blocks[n, :, m] > 0).any():
                yield (*pair, network, metric), names[here], blocks[n, here, m], site_ratios(ratios[n, here, m])
