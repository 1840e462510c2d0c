"""How much slower one protocol is than another, from the ratios of runs that were measured side by side.

The unit is the log ratio ln(compared / reference) of the two runs of one block. Site, machine and moment are the same
for both, so they cancel. From ten blocks on, a site's ratio is Huber's estimate from its blocks' log ratios, which
hardly moves if a few runs take several times as long. With fewer blocks it is their mean. A mean over sites is over the
campaign's own sites. Its error comes from the runs, and it says nothing about other sites
(`analysis.statistics.heterogeneity` does).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import count

import numpy as np
from numpy.typing import NDArray
from scipy import special

from analysis.statistics.gain import mean
from analysis.statistics.hypotheses import Hypotheses, Pair
from analysis.statistics.samples import Array, Samples, by_count, by_metric, counts, logarithms

# From this many blocks on, the location is Huber's estimate. With fewer, the scatter that it needs is too uncertain.
ROBUST_BLOCKS = 10
# Ratios that are further from the median than this multiple of their scatter are drawn in to there. The scatter is that
# of a normal distribution with the same share of ratios near the median. A median distance would be 0 where times come
# in whole frames of a film. Simulated with 10 and 31 blocks of 1 and 12 sites, in nine worlds (normal, heavy tails, one
# load in ten or twenty 1.5 to 3 times as long, times in whole frames): intervals of 95 % hold in 94 to 97 % of cases.
REACH = 2.0
NEAR_SHARE = 0.7
# Ratios that differ by less are equal: times are whole frames of a film, and logarithms are rounded.
SAME = 1e-9
# An interval from few blocks is long mostly because the scatter of runs is uncertain. It is informative if it is at
# most this many times as long as with a known scatter. If 13 intervals hold at once, each is 57 times as long with two
# blocks of one site, and 2.8 times with four.
MOST_WIDENING = 3.0


@dataclass(frozen=True)
class MeanRatio:
    """The mean over sites of log ratios, its standard error, and the error's degrees of freedom; arrays of one shape.

    The error is NaN if no site has two blocks, and 0 if all blocks of each site have the same ratio. If the error is 0,
    p values are those of a sign test. `signs` is the number of blocks that this test counts: all blocks if the sites
    agree on the sign, else the blocks of the site with the fewest.
    """

    centre: Array
    error: Array
    freedom: Array
    signs: NDArray[np.int64]

    def interval(self, confidence: Array | float) -> tuple[Array, Array]:
        """The interval of `centre`."""
        reach = special.stdtrit(self.freedom, (1 + confidence) / 2) * self.error
        return self.centre - reach, self.centre + reach

    def has_interval(self, confidence: Array | float) -> NDArray[np.bool_]:
        """Whether there are enough blocks for `interval` to be informative; see MOST_WIDENING."""
        # If all ratios are equal, the only uncertainty comes from their number.
        freedom = np.where(self.error > 0, self.freedom, self.signs - 1)
        return np.isfinite(self.error) & (widening(freedom, confidence) <= MOST_WIDENING)

    def difference_p(self) -> Array:
        """The two-sided p value of a mean log ratio of 0."""
        return np.minimum(1, 2 * self._tail(np.abs(self.centre)))

    def equivalence_p(self, margin: Array | float) -> Array:
        """The p value of a mean log ratio that is `margin` or more from 0 (two one-sided tests; Schuirmann 1987)."""
        return self._tail(margin - np.abs(self.centre))

    def below_p(self, limit: Array | float) -> Array:
        """The one-sided p value of a mean that is not below `limit`."""
        return self._tail(limit - self.centre)

    def above_p(self, limit: Array | float) -> Array:
        """The one-sided p value of a mean that is not above `limit`."""
        return self._tail(self.centre - limit)

    def _tail(self, distance: Array) -> Array:
        """The probability of an estimate that is off by `distance` or more in one direction.

        If all ratios of each site are equal, this is the chance that all their signs are equal (the sign test).
        """
        # A distance that is only a rounding error counts as 0.
        distance = np.where(np.abs(distance) < SAME, 0, distance)
        with np.errstate(divide="ignore", invalid="ignore"):
            p = special.stdtr(self.freedom, -distance / self.error)
        constant = np.where(distance > 0, 0.5 ** np.minimum(self.signs, 1000), 1.0)
        return np.asarray(np.where(self.error == 0, constant, p))


def block_ratios(samples: Samples, pair: Pair) -> Array:
    """ln(compared / reference) of each block that has both times, and both above 0; otherwise NaN: networks x sites x
    metrics x blocks."""
    return logarithms(samples.of(pair.compared)) - logarithms(samples.of(pair.reference))


def locations(ratios: Array) -> tuple[Array, Array]:
    """The location along the last axis, and the variance of its error (NaN with a single value); NaN without values.

    Huber's estimate is one step from the median (Bickel 1975, One-step Huber estimates in the linear model): the mean
    of the ratios as drawn in, corrected for those that were. Its error is that of the mean of the ratios as
    drawn in, divided by the share that was not.
    """
    both = by_count(_location_and_variance, ratios, least=1, outputs=(2,))
    return both[..., 0], both[..., 1]


def _location_and_variance(ratios: Array) -> Array:
    blocks = ratios.shape[-1]
    if blocks < ROBUST_BLOCKS:
        return _mean_and_variance(ratios)
    middle = np.median(ratios, axis=-1, keepdims=True)
    distances = np.abs(ratios - middle)
    near = np.partition(distances, int(NEAR_SHARE * blocks), axis=-1)[:, int(NEAR_SHARE * blocks), None]
    reach = REACH * near / special.ndtri((1 + NEAR_SHARE) / 2)
    # If most ratios are equal, nothing says what is far off.
    reach = np.where(near < SAME, np.inf, reach)
    share_within = (distances <= reach).mean(axis=-1)
    drawn_in = _mean_and_variance(np.clip(ratios, middle - reach, middle + reach))
    step = (drawn_in[:, 0] - middle[:, 0]) / share_within
    return np.stack([middle[:, 0] + step, drawn_in[:, 1] / share_within**2], axis=-1)


def _mean_and_variance(ratios: Array) -> Array:
    blocks = ratios.shape[-1]
    variance = ratios.var(axis=-1, ddof=1) / blocks if blocks > 1 else np.full(len(ratios), np.nan)
    # Rounding may hide that all ratios are equal.
    variance = np.where((np.ptp(ratios, axis=-1) < SAME) & (blocks > 1), 0, variance)
    return np.stack([ratios.mean(axis=-1), variance], axis=-1)


def widening(freedom: Array, confidence: Array | float) -> Array:
    """The factor by which an interval is longer than with a known standard error: Student's quantile over the normal
    quantile. NaN without a degree of freedom."""
    place = (1 + confidence) / 2
    return np.asarray(special.stdtrit(freedom, place) / special.ndtri(place))


def chi_squared_quantiles(places: Array, freedom: float) -> Array:
    """The quantiles of a chi-squared distribution with these degrees of freedom, at the probabilities `places`."""
    return np.asarray(2 * special.gammaincinv(freedom / 2, places))


def blocks_for_interval(confidence: float) -> int:
    """The smallest number of blocks of each site for which `MeanRatio.has_interval` holds, for any number of sites
    (Satterthwaite's degrees of freedom are at least those of one site)."""
    return next(blocks for blocks in count(2) if widening(np.array(blocks - 1.0), confidence) <= MOST_WIDENING)


def mean_over_sites(ratios: Array) -> MeanRatio:
    """The mean over sites of `ratios` (… x sites x blocks), for all leading axes at once.

    Every site with a block counts once, however many blocks it has. A site with one block has no error of its own, so
    it gets the error of a block at the other sites. The degrees of freedom are Satterthwaite's.
    """
    centres, variances = locations(ratios)
    blocks = counts(ratios)
    is_present, is_single = blocks > 0, blocks == 1
    with np.errstate(divide="ignore", invalid="ignore"):
        sites = np.where(is_present.any(axis=-1), is_present.sum(axis=-1), np.nan)
        known = np.nansum(variances, axis=-1)
        of_block = np.nansum(variances * blocks, axis=-1) / (blocks > 1).sum(axis=-1)
        error = np.sqrt(known + np.where(is_single.any(axis=-1), is_single.sum(axis=-1) * of_block, 0)) / sites
        # Sites with one block take their variance from the other sites, and so have the same degrees of freedom.
        inverse = np.nansum(variances**2 / np.maximum(blocks - 1, 1), axis=-1)
        freedom = np.where(inverse > 0, known**2 / inverse, np.inf)
    error = np.where((blocks > 1).any(axis=-1), error, np.nan)
    sign = np.sign(centres)
    agree = np.fmax.reduce(sign, axis=-1, initial=-1) <= np.fmin.reduce(sign, axis=-1, initial=1)
    fewest = np.where(is_present, blocks, blocks.max(axis=-1, keepdims=True, initial=0)).min(axis=-1, initial=2**31)
    signs = np.where(agree, blocks.sum(axis=-1), fewest)
    return MeanRatio(np.nansum(centres, axis=-1) / sites, error, freedom, signs)


def of_numbers(centre: float, error: float, numbers: int) -> MeanRatio:
    """A mean of `numbers` numbers, one for each site, with its error."""
    return MeanRatio(np.asarray(centre), np.asarray(error), np.asarray(numbers - 1.0), np.asarray(numbers))


def independent_difference(first: MeanRatio, second: MeanRatio) -> MeanRatio:
    """`second` - `first`, which must be independent; the degrees of freedom are Satterthwaite's."""
    variances = first.error**2, second.error**2
    total = variances[0] + variances[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = total**2 / (variances[0] ** 2 / first.freedom + variances[1] ** 2 / second.freedom)
    signs = np.minimum(first.signs, second.signs)
    return MeanRatio(second.centre - first.centre, np.sqrt(total), np.where(total > 0, freedom, np.inf), signs)


def site_margins(samples: Samples, pair: Pair, hypotheses: Hypotheses, rtt_ms: Mapping[str, float]) -> Array:
    """The log ratio below which a pair counts as equivalent on a site: networks x sites x metrics.

    It is the share that `hypotheses.equivalence_round_trips` of the network's RTT add to the reference's time, or
    `hypotheses.equivalence_margin` if a network has no RTT. NaN if the reference has no run.
    """
    typical_ms = np.exp(mean(logarithms(samples.of(pair.reference))))
    rtts_ms = np.array([rtt_ms.get(name, 0.0) for name in samples.networks])[:, None, None]
    added_ms = hypotheses.equivalence_round_trips * rtts_ms
    share = np.log1p(added_ms / typical_ms)
    return np.asarray(np.where(added_ms > 0, share, np.log1p(hypotheses.equivalence_margin)))


def margins(samples: Samples, pair: Pair, hypotheses: Hypotheses, rtt_ms: Mapping[str, float]) -> Array:
    """The mean over sites of `site_margins`, which is the margin of the mean log ratio: networks x metrics."""
    return mean(by_metric(site_margins(samples, pair, hypotheses, rtt_ms)))
