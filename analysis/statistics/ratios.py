"""How much slower one protocol is than another, from the ratios of runs that were measured side by side.

The unit is the log ratio ln(compared / reference) of the two runs of one block: site, machine and moment are the same
for both, so they cancel. A site's ratio is the Hodges-Lehmann location of its blocks' log ratios, which a few runs that
take several times as long hardly move. Where ratios are coarse, since times are whole frames of a film and hardly
scatter by more than that, this location would jump from one value to the next: it is then the mean of the ratios, those
that are far off drawn in. A mean over sites is over the sites of the campaign themselves: its error is that of the
runs, and it says nothing of other sites (`analysis.statistics.heterogeneity` does).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from analysis.statistics.gain import mean
from analysis.statistics.hypotheses import Hypotheses, Pair
from analysis.statistics.samples import Array, Samples, by_count, by_metric, counts, logarithms

# From this many blocks on the location is Hodges and Lehmann's; of fewer it is the mean, since their Walsh averages are
# too few to say how far the location is off.
ROBUST_BLOCKS = 5
# Quantile of the interval from whose length the error of a location is computed.
LENGTH_QUANTILE = 0.95
# The factor by which the error from the length is too large for 5, 6, … 31 blocks; for more, its excess over 1 is this
# share of 1 / blocks. Both are those of normal ratios; for ratios with longer tails the error remains somewhat too
# large. The length has fewer degrees of freedom than the blocks: FREEDOM_SHARE more for each block beyond
# ROBUST_BLOCKS.
# tests/analysis/test_ratios.py computes these numbers anew.
OVERESTIMATES = (
    1.089, 1.149, 1.094, 1.078, 1.078, 1.063, 1.061, 1.048, 1.056, 1.045, 1.042, 1.040, 1.040, 1.035,
    1.035, 1.033, 1.030, 1.030, 1.027, 1.026, 1.028, 1.025, 1.024, 1.026, 1.023, 1.022, 1.022,
)  # fmt: skip
OVERESTIMATE_SHARE = 0.65
FREEDOM_SHARE = 0.73
# Ratios are coarse where neighbours among the middle half of their Walsh averages are further apart than this multiple
# of the span of that half, divided by the number of blocks, since averages of more blocks lie closer. Normal ratios
# that do not come in steps are coarse in 11 % of cases with five blocks, in 3 % with ten, and in 0.01 % with 31.
COARSE_SHARE = 2.5
# How far from the location a coarse ratio counts: this many times its scatter, or the step between values, if larger.
REACH = 3.0
# Ratios that differ by less are the same: times are whole frames of a film, and logarithms are rounded.
SAME = 1e-9
# An interval of few blocks is long mostly because they do not tell how much runs scatter. It says something where it is
# at most this many times as long as it would be if that scatter were known. One of 13 that hold at once is 57 times as
# long with two blocks of one site, and 2.8 times with four.
MOST_WIDENING = 3.0
# These Walsh averages take 32 MB.
MOST_AVERAGES = 2**22


@dataclass(frozen=True)
class MeanRatio:
    """The mean over sites of log ratios, its standard error, and the degrees of freedom of that; arrays of one shape.

    The error is NaN where no site has two blocks, and 0 where all blocks of each site have the same ratio. `signs`: how
    many blocks a sign test may then count: all where the sites agree on the sign, else those of the site that has
    fewest.
    """

    centre: Array
    error: Array
    freedom: Array
    signs: NDArray[np.int64]

    def interval(self, confidence: float) -> tuple[Array, Array]:
        """The interval of `centre`."""
        reach = stats.t.ppf((1 + confidence) / 2, self.freedom) * self.error
        return self.centre - reach, self.centre + reach

    def has_interval(self, confidence: float) -> NDArray[np.bool_]:
        """Whether there are blocks enough for `interval` to say something; see MOST_WIDENING."""
        # Ratios that are all the same leave no doubt but that of their number.
        freedom = np.where(self.error > 0, self.freedom, self.signs - 1)
        return np.isfinite(self.error) & (widening(freedom, confidence) <= MOST_WIDENING)

    def difference_p(self) -> Array:
        """p value, two-sided, of a mean log ratio of 0."""
        # Rounding makes no difference of none.
        distance = np.where(np.abs(self.centre) < SAME, 0, np.abs(self.centre))
        return np.minimum(1, 2 * self._tail(distance))

    def equivalence_p(self, margin: Array | float) -> Array:
        """p value of a mean log ratio that is `margin` or more from 0 (two one-sided tests; Schuirmann 1987)."""
        return self._tail(margin - np.abs(self.centre))

    def below_p(self, limit: float) -> Array:
        """p value, one-sided, of a mean that is not below `limit`."""
        half = replace(self, centre=self.centre - limit).difference_p() / 2
        return np.asarray(np.where(self.centre < limit, half, 1 - half))

    def above_p(self, limit: float) -> Array:
        """p value, one-sided, of a mean that is not above `limit`."""
        return replace(self, centre=-self.centre).below_p(-limit)

    def slower_p(self, margin: Array | float) -> Array:
        """p value, one-sided, of a mean log ratio of `margin` or less: whether it is shown to be slower by more."""
        return self._tail(self.centre - margin)

    def _tail(self, distance: Array) -> Array:
        """Probability of an estimate that is off by `distance` or more in one direction.

        Where all ratios of a site are the same, it is that of so many signs that are the same (the sign test).
        """
        with np.errstate(divide="ignore", invalid="ignore"):
            p = stats.t.sf(distance / self.error, self.freedom)
        constant = np.where(distance > 0, 0.5 ** np.minimum(self.signs, 1000), 1.0)
        return np.asarray(np.where(self.error == 0, constant, p))


def block_ratios(samples: Samples, pair: Pair) -> Array:
    """ln(compared / reference) of each block that has both: networks x sites x metrics x blocks, otherwise NaN.

    NaN, too, where a time is 0 or less, which has no logarithm.
    """
    return logarithms(samples.of(pair.compared)) - logarithms(samples.of(pair.reference))


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
        return _mean_and_variance(ratios)
    averages = walsh_averages(ratios)
    error = averages.error / overestimate(blocks)
    # Where most averages are the same, neither the scatter nor the steps are known.
    reach = REACH * np.maximum(error * np.sqrt(blocks), 2 * averages.step)
    reach = np.where(averages.span < SAME, np.inf, reach)[:, None]
    middle = averages.centre[:, None]
    coarse = _mean_and_variance(np.clip(ratios, middle - reach, middle + reach))
    is_coarse = (averages.step >= COARSE_SHARE / blocks * averages.span) | (error < SAME)
    return np.where(is_coarse[:, None], coarse, np.stack([averages.centre, error**2], axis=-1))


def middles(ratios: Array) -> Array:
    """Hodges and Lehmann's location along the last axis, of coarse ratios, too; of few blocks the mean."""

    def middle(some: Array) -> Array:
        return walsh_averages(some).centre if some.shape[-1] >= ROBUST_BLOCKS else np.asarray(some.mean(axis=-1))

    return by_count(middle, ratios, least=1)


def _mean_and_variance(ratios: Array) -> Array:
    blocks = ratios.shape[-1]
    variance = ratios.var(axis=-1, ddof=1) / blocks if blocks > 1 else np.full(len(ratios), np.nan)
    # Rounding may hide that they are all the same.
    variance = np.where((np.ptp(ratios, axis=-1) < SAME) & (blocks > 1), 0, variance)
    return np.stack([ratios.mean(axis=-1), variance], axis=-1)


class WalshAverages(NamedTuple):
    """Statistics of the Walsh averages of each row of ratios (the means of two of them, or of one and itself).

    `centre`: their median, Hodges and Lehmann's location; `error`: that of the centre by the length of its interval,
    which is `overestimate` times too large; `span`: how far their middle half reaches; `step`: the largest distance
    between neighbours there, half of that between the ratios if these come in steps.
    """

    centre: Array
    error: Array
    span: Array
    step: Array


def walsh_averages(ratios: Array, most_averages: int = MOST_AVERAGES) -> WalshAverages:
    """The Walsh averages of each row of `ratios`, of which `most_averages` are in memory at once."""
    rows, blocks = ratios.shape
    one, other = np.triu_indices(blocks)
    expected, deviation = blocks * (blocks + 1) / 4, np.sqrt(blocks * (blocks + 1) * (2 * blocks + 1) / 24)
    place = max(0, int(expected - stats.norm.ppf(LENGTH_QUANTILE) * deviation))
    quarter = len(one) // 4
    centres, lengths, spans, steps = np.empty((4, rows))
    rows_at_once = max(1, most_averages // len(one))
    for first in range(0, rows, rows_at_once):
        some = slice(first, first + rows_at_once)
        sums = ratios[some][:, one]
        sums += ratios[some][:, other]
        sums.sort(axis=-1)
        # Each sum is twice a Walsh average; the median is the mean of the middle two, which may be the same.
        centres[some] = (sums[:, len(one) // 2] + sums[:, (len(one) - 1) // 2]) / 4
        lengths[some] = (sums[:, -1 - place] - sums[:, place]) / 2
        half = sums[:, quarter : len(one) - quarter]
        spans[some] = (half[:, -1] - half[:, 0]) / 2
        steps[some] = np.diff(half, axis=-1).max(axis=-1) / 2
    return WalshAverages(centres, lengths / (2 * (expected - place) / deviation), spans, steps)


def overestimate(blocks: int) -> float:
    """The factor by which the error from the length is too large for this many blocks: 1.09 for 5, 1.02 for 31."""
    place = blocks - ROBUST_BLOCKS
    return OVERESTIMATES[place] if place < len(OVERESTIMATES) else 1 + OVERESTIMATE_SHARE / blocks


def degrees_of_freedom(blocks: NDArray[np.int64]) -> Array:
    """The degrees of freedom of the variance of a site's location."""
    return np.minimum(blocks - 1, ROBUST_BLOCKS - 1) + FREEDOM_SHARE * np.maximum(blocks - ROBUST_BLOCKS, 0)


def widening(freedom: Array, confidence: float) -> Array:
    """The factor by which an interval is longer than if its standard error were known: Student's quantile over the
    normal quantile. NaN without a degree of freedom."""
    place = (1 + confidence) / 2
    return np.asarray(stats.t.ppf(place, freedom) / stats.norm.ppf(place))


def blocks_for_interval(confidence: float) -> int:
    """From how many blocks of each site on `MeanRatio.has_interval`, of however many sites (Satterthwaite's degrees of
    freedom are at least those of one)."""
    blocks = 2
    while widening(degrees_of_freedom(np.array(blocks)), confidence) > MOST_WIDENING:
        blocks += 1
    return blocks


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
        inverse = np.where(has_variance, variances**2 / np.maximum(degrees_of_freedom(blocks), 1), 0).sum(axis=-1)
        single = (filled - np.where(has_variance, variances, 0)).sum(axis=-1)
        known = total - single
        # Sites of one block take their variance from the others, and so have these's freedom.
        freedom = np.where(inverse > 0, known**2 / np.where(inverse > 0, inverse, 1), np.inf)
        centre = np.nansum(centres, axis=-1) / np.where(sites > 0, sites, np.nan)
        error = np.sqrt(total) / np.where(sites > 0, sites, np.nan)
    error = np.where(has_variance.any(axis=-1), error, np.nan)
    sign = np.sign(np.where(is_present, centres, np.nan))
    agree = np.fmax.reduce(sign, axis=-1, initial=-1) <= np.fmin.reduce(sign, axis=-1, initial=1)
    fewest = np.where(is_present, blocks, blocks.max(axis=-1, keepdims=True, initial=0)).min(axis=-1, initial=2**31)
    total = blocks.sum(axis=-1)
    return MeanRatio(np.asarray(centre), np.asarray(error), freedom, np.where(agree, total, fewest))


def of_numbers(centre: float, error: float, numbers: int) -> MeanRatio:
    """A mean of so many numbers, one of each site, with its error."""
    return MeanRatio(np.asarray(centre), np.asarray(error), np.asarray(numbers - 1.0), np.asarray(numbers))


def independent_difference(first: MeanRatio, second: MeanRatio) -> MeanRatio:
    """`second` - `first`, which are independent; the degrees of freedom are Satterthwaite's."""
    variances = first.error**2, second.error**2
    total = variances[0] + variances[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = total**2 / (variances[0] ** 2 / first.freedom + variances[1] ** 2 / second.freedom)
    signs = np.minimum(first.signs, second.signs)
    return MeanRatio(second.centre - first.centre, np.sqrt(total), np.where(total > 0, freedom, np.inf), signs)


def site_margins(samples: Samples, pair: Pair, hypotheses: Hypotheses, rtt_ms: Mapping[str, float]) -> Array:
    """The log ratio below which a pair counts as equivalent on a site: networks x sites x metrics.

    It is the share that `hypotheses.equivalence_round_trips` of the network's RTT add to the reference's time, or
    `hypotheses.equivalence_margin` where a network has no RTT. NaN where the reference has no run.
    """
    logs = logarithms(samples.of(pair.reference))
    typical_ms = np.exp(by_count(lambda values: values.mean(axis=-1), logs, least=1))
    added_ms = hypotheses.equivalence_round_trips * np.array([rtt_ms.get(name, 0.0) for name in samples.networks])
    share = np.log1p(added_ms[:, None, None] / typical_ms)
    return np.asarray(np.where(added_ms[:, None, None] > 0, share, np.log1p(hypotheses.equivalence_margin)))


def margins(samples: Samples, pair: Pair, hypotheses: Hypotheses, rtt_ms: Mapping[str, float]) -> Array:
    """The mean over sites of `site_margins`, which is that of the mean log ratio: networks x metrics."""
    return mean(by_metric(site_margins(samples, pair, hypotheses, rtt_ms)))
