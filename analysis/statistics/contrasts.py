"""Beyond the paper: tests and intervals for two samples of run times that make fewer assumptions.

Every function takes two arrays that have the same shape except for the last axis, the runs (NaN: no run), and computes
all other axes at once. The tests are those of scipy and statsmodels.
"""

import math
import zlib
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from analysis.statistics.contrast_table import contrast_columns, false_discovery_rate, judged
from analysis.statistics.hypotheses import Hypotheses, Pair
from analysis.statistics.outcomes import FEW_RUNS, WILD_RATIO, WILD_SKEWNESS
from analysis.statistics.ratios import block_ratios, mean_over_sites, site_margins
from analysis.statistics.samples import Array, Samples, by_count, counts, is_constant, t_test_p

SEED = 2019
RESAMPLES = 2000
# If either sample has more runs than this, the distribution of Mann and Whitney's U is taken as normal.
EXACT_RUNS = 60
ROUNDING = 1e-7
# Matches notes that ask a reader to look at the runs of a comparison; a note on too few runs does not.
UNUSUAL = "skewed|variance|of 0"
RATIO = ("ratio_gain", "ratio_low", "ratio_high")
COLUMNS = ["reference", "compared", "network", "site", "metric", *RATIO, "p"]
COLUMNS += ["p_corrected", "equivalence_p", "equivalence_p_corrected", "margin", "verdict", "welch_p", "mannwhitney_p"]
COLUMNS += ["cliffs_delta", "shift_ms", "shift_low", "shift_high", "gain_low", "gain_high", "note"]


def contrasts(samples: Samples, hypotheses: Hypotheses, rtt_ms: Mapping[str, float]) -> pd.DataFrame:
    """Every statistic of single sites, for every pair, network, site and metric with a run of both protocols.

    Columns:
    - reference, compared, network, site, metric
    - from the ratios within blocks (`analysis.statistics.ratios`): ratio_gain (of their location) with ratio_low and
      ratio_high; p and equivalence_p, both also corrected by Benjamini and Hochberg's false discovery rate over all
      rows (_corrected); margin (the gain within which both count as equivalent) and verdict
    - from runs regardless of blocks: welch_p, mannwhitney_p; cliffs_delta; the Hodges-Lehmann shift_ms with shift_low
      and shift_high; gain_low and gain_high (the interval of the paper's gain)
    - note: what is unusual about the runs
    """

    def statistics(pair: Pair, reference: Array, compared: Array) -> dict[str, NDArray[Any]]:
        ranks = mann_whitney(reference, compared)
        shift = hodges_lehmann(reference, compared, hypotheses.confidence)
        low, high = gain_interval(reference, compared, hypotheses.confidence, pair)
        ratio = mean_over_sites(block_ratios(samples, pair)[..., None, :])
        margin = site_margins(samples, pair, hypotheses, rtt_ms)
        return {
            **contrast_columns(ratio, hypotheses.confidence, RATIO, margin),
            "welch_p": welch_p(reference, compared),
            "mannwhitney_p": ranks[..., 0],
            "cliffs_delta": ranks[..., 1],
            "shift_ms": shift[..., 0],
            "shift_low": shift[..., 1],
            "shift_high": shift[..., 2],
            "gain_low": low,
            "gain_high": high,
            "note": notes(reference, compared),
        }

    table = samples.compare(hypotheses.comparisons, statistics, COLUMNS)
    if not hypotheses.comparisons:
        return table.astype({"note": str})
    return judged(table, false_discovery_rate, hypotheses.significant_p, RATIO[0])[COLUMNS]


def welch_p(reference: Array, compared: Array) -> Array:
    """The p value of Welch's t test of equal means, for any variances."""
    return t_test_p(reference, compared, equal_var=False)


def mann_whitney(reference: Array, compared: Array) -> Array:
    """Mann and Whitney's p value, and Cliff's delta, along a new last axis.

    Cliff's delta is P(compared > reference) - P(compared < reference): -1 if every run of `compared` is faster than
    every run of `reference`.
    """

    def rank_test(x: Array, y: Array) -> Array:
        result = np.empty((len(x), 2))
        # Cells with and without ties are tested apart, since ties in one cell must not decide whether p is exact in
        # another.
        has_ties = (np.diff(np.sort(np.concatenate([x, y], axis=1), axis=1), axis=1) == 0).any(axis=1)
        for cells in (has_ties, ~has_ties):
            if cells.any():
                test = stats.mannwhitneyu(y[cells], x[cells], axis=-1)
                delta = 2 * test.statistic / (x.shape[1] * y.shape[1]) - 1
                result[cells] = np.stack([test.pvalue, delta], axis=1)
        return result

    return by_count(rank_test, reference, compared, least=1, outputs=(2,))


def hodges_lehmann(reference: Array, compared: Array, confidence: float) -> Array:
    """The Hodges-Lehmann shift and its interval, along a new last axis.

    The shift is the median, in ms, of the differences (`compared` - `reference`) of all pairs of runs. The interval
    follows from Mann and Whitney's test (Moses); it is NaN if there are too few runs.
    """

    def shift(x: Array, y: Array) -> Array:
        differences = np.sort((y[:, :, None] - x[:, None, :]).reshape(len(x), -1), axis=1)
        result = np.full((len(x), 3), np.nan)
        result[:, 0] = np.median(differences, axis=1)
        outside = ranks_outside(x.shape[1], y.shape[1], confidence)
        if outside:
            result[:, 1], result[:, 2] = differences[:, outside - 1], differences[:, -outside]
        return result

    return by_count(shift, reference, compared, least=1, outputs=(3,))


@cache
def ranks_outside(m: int, n: int, confidence: float) -> int:
    """How many of the m * n sorted differences lie beyond the interval at either end, plus one; 0: no interval.

    The largest C with P(U < C) <= (1 - confidence) / 2, where U is Mann and Whitney's statistic (Hollander and Wolfe,
    Nonparametric Statistical Methods, section 4.3).
    """
    tail = (1 - confidence) / 2
    if max(m, n) > EXACT_RUNS:
        spread = math.sqrt(m * n * (m + n + 1) / 12)
        return max(0, math.floor(m * n / 2 - float(stats.norm.ppf(1 - tail)) * spread))
    # ways[u]: the number of arrangements with U = u, the coefficients of the Gaussian binomial as whole numbers.
    ways = [1] + [0] * (m * n)
    for i in range(1, m + 1):
        for u in range(m * n, n + i - 1, -1):
            ways[u] -= ways[u - n - i]
        for u in range(i, m * n + 1):
            ways[u] += ways[u - i]
    below, total = 0, math.comb(m + n, m)
    for rank, way in enumerate(ways):
        below += way
        if below / total > tail:
            return rank
    return 0


def difference_interval(reference: Array, compared: Array, confidence: float) -> tuple[Array, Array]:
    """Welch's interval of mean(compared) - mean(reference), in ms; NaN if either has fewer than two runs."""

    def welch(x: Array, y: Array) -> Array:
        ends = stats.ttest_ind(y, x, axis=-1, equal_var=False).confidence_interval(confidence)
        constant = is_constant(x) & is_constant(y)
        return np.where(constant[:, None], np.nan, np.stack([ends.low, ends.high], axis=1))

    ends = by_count(welch, reference, compared, outputs=(2,))
    return ends[..., 0], ends[..., 1]


def gain_interval(
    reference: Array, compared: Array, confidence: float, keys: tuple[str, str] = ("a", "b")
) -> tuple[Array, Array]:
    """The bootstrap interval of the gain, by studentised resampling of the log ratio of the means.

    The resamples of a sample depend only on its key and its number of runs, so exchanging the samples with their keys
    gives the mirrored interval. NaN if either sample has fewer than three runs, if there is no variance, or if too many
    resamples repeat a single run.
    """
    tail = (1 - confidence) / 2

    def interval(x: Array, y: Array) -> Array:
        (mean_x, error_x), (mean_y, error_y) = resampled_log_means(x, keys[0]), resampled_log_means(y, keys[1])
        centre = np.log(y.mean(axis=1)) - np.log(x.mean(axis=1))
        error = np.hypot(standard_error(x), standard_error(y))
        pivots = mean_y
        pivots -= mean_x
        pivots -= centre[:, None]
        pivots /= np.hypot(error_x, error_y, out=error_x)
        # A resample that repeats a single run has an error of 0, so its pivot is infinite.
        pivots[np.isnan(pivots)] = 0
        low, high = np.quantile(pivots, [1 - tail, tail], axis=1, method="nearest", overwrite_input=True)
        ends = centre[:, None] - np.stack([low, high], axis=1) * error[:, None]
        has_interval = (error > 0) & np.isfinite(ends).all(axis=1)
        return np.where(has_interval[:, None], np.expm1(ends), np.nan)

    ends = by_count(interval, _positive(reference), _positive(compared), least=3, outputs=(2,))
    return ends[..., 0], ends[..., 1]


def resampled_log_means(x: Array, key: str) -> tuple[Array, Array]:
    """For each row of `x` (cells x runs): ln of the means of RESAMPLES resamples, and their standard errors."""
    size = x.shape[1]
    weights = resample_weights(size, key)
    middle = x.mean(axis=1, keepdims=True)
    off = x - middle
    means = off @ weights
    # Computed in place: there are millions of values, and fresh memory for each step takes longer than the step.
    errors = off**2 @ weights
    errors -= means**2
    np.maximum(errors, 0, out=errors)
    errors /= size - 1
    np.sqrt(errors, out=errors)
    means += middle
    errors /= means
    # The error of a resample that repeats a single run is 0, apart from rounding.
    errors[errors < ROUNDING] = 0
    return np.log(means, out=means), errors


@cache
def resample_weights(size: int, key: str) -> Array:
    """RESAMPLES resamples of `size` runs, as the weight of each run in each resample: runs x resamples."""
    draw = np.random.default_rng([SEED, zlib.crc32(key.encode()), size])
    return np.asarray(draw.multinomial(size, np.full(size, 1 / size), size=RESAMPLES).T / size)


def standard_error(x: Array) -> Array:
    """The standard error of ln(mean) of each row, by the delta method."""
    return np.asarray(x.std(axis=1, ddof=1) / math.sqrt(x.shape[1]) / x.mean(axis=1))


def notes(reference: Array, compared: Array) -> NDArray[np.object_]:
    """Remarks on the runs of each cell, mostly empty: whether they are few, and what is unusual about them."""
    result = np.full(reference.shape[:-1], "", dtype=object)
    fewest = np.minimum(counts(reference), counts(compared))
    for applies, remark in (
        (fewest < 2, "one run"),
        ((fewest >= 2) & (fewest < FEW_RUNS), f"fewer than {FEW_RUNS} runs"),
        ((fewest >= 2) & _flat(reference) & _flat(compared), "no variance"),
        (_wild(reference) | _wild(compared), "wildly skewed"),
        ((reference <= 0).any(axis=-1) | (compared <= 0).any(axis=-1), "a time of 0"),
    ):
        result[applies] = [f"{before}; {remark}".lstrip("; ") for before in result[applies]]
    return result


def unusual(table: pd.DataFrame) -> pd.DataFrame:
    """The comparisons in the table of `contrasts` whose runs are unusual in another way than being few."""
    rows = table[table["note"].str.contains(UNUSUAL)]
    return rows[["network", "site", "compared", "reference", "metric", "note"]].reset_index(drop=True)


def _wild(values: Array) -> NDArray[np.bool_]:
    def shape(x: Array) -> Array:
        skewness = np.where(is_constant(x), 0, stats.skew(x, axis=1))
        longest = x[:, -1] / np.maximum(np.median(x, axis=1), 1e-9)
        return np.asarray((np.abs(skewness) > WILD_SKEWNESS) | (longest > WILD_RATIO), dtype=float)

    return np.asarray(by_count(shape, values, least=3) == 1)


def _flat(values: Array) -> NDArray[np.bool_]:
    return np.asarray(by_count(lambda x: is_constant(x).astype(float), values) == 1)


def _positive(values: Array) -> Array:
    return np.where(values > 0, values, np.nan)
