"""How much the answer depends on the method: each contrast of the family by other methods and on fewer data."""

from collections.abc import Callable
from itertools import product

import numpy as np
import pandas as pd

from analysis.statistics.contrast_table import contrast_columns
from analysis.statistics.gain import gain, mean, median
from analysis.statistics.hypotheses import Hypotheses
from analysis.statistics.ratios import SAME, block_ratios, locations, of_numbers
from analysis.statistics.samples import OVER_SITES, Array, Samples, by_metric, counts, logarithms

WITHOUT = ("without_weightiest", "others_low", "others_high")
# The columns about slow loads; see `slow_loads`.
SLOW_LOADS = ["mean_gain", "mean_low", "mean_high", "slow_gain", "slow_low", "slow_high"]
SLOW_LOADS += ["long_reference", "long_compared"]
COLUMNS = [*OVER_SITES, "sites", "gain", "paper_gain", "paper_bias", "median_gain", "without_low", "without_high"]
COLUMNS += ["weightiest_site", *WITHOUT, *SLOW_LOADS]
# Slow loads: the quantile that stands for them, and from which multiple of the usual time on a load is long. With fewer
# blocks there are too few slow loads to compare.
SLOW, LONG, LEAST_BLOCKS = 0.95, 2.0, 20
RESAMPLES, SEED = 400, 43


def sensitivity(samples: Samples, hypotheses: Hypotheses) -> pd.DataFrame:
    """One row for each contrast of the family for which some site has a block; all gains are means over sites.

    Columns: reference, compared, network, metric, sites;
    gain: the family's own (location within blocks);
    paper_gain: the paper's ratio of arithmetic means, and paper_bias: how much too high it is expected to be (`bias`);
    median_gain: the median over sites instead of the mean;
    without_low, without_high: the smallest and the largest gain if one site is left out;
    weightiest_site: the site that changes the gain most if left out, and without_weightiest: the gain without it;
    others_low, others_high: the interval of that gain for sites like the others;
    mean_gain to long_compared: of the slow loads (`slow_loads`).
    Values that cannot be computed are NaN.
    """
    rows = []
    for pair in samples.measured(hypotheses.family):
        a, b = map(by_metric, samples.of_pair(pair))
        centres, variances = map(by_metric, locations(block_ratios(samples, pair)))
        gains = {"gain": np.expm1(mean(centres)), "median_gain": np.expm1(median(centres))}
        gains |= {"paper_gain": mean(gain(a, b)), "paper_bias": mean(bias(a, b))}
        for (n, network), metric in product(enumerate(samples.networks), hypotheses.family_metrics):
            cell = n, samples.metrics.index(metric)
            if sites := int(counts(centres[cell])):
                row = {**pair._asdict(), "network": network, "metric": metric, "sites": sites}
                row |= {name: float(values[cell]) for name, values in gains.items()}
                row |= slow_loads(a[cell], b[cell])
                rows.append(row | leave_one_out(centres[cell], variances[cell], samples.sites, hypotheses.confidence))
    return pd.DataFrame(rows, columns=COLUMNS)


def leave_one_out(
    centres: Array, variances: Array, names: tuple[str, ...], confidence: float
) -> dict[str, float | str]:
    """The gain if one site is left out: see `sensitivity`. NaN with one site; the interval is also NaN with two sites
    or without the errors of the runs.

    `centres`: the sites' log ratios; `variances`: the variances of their errors, NaN if unknown. Student's interval
    assumes that sites scatter at least as much as their runs do, since a few sites may scatter little by chance.
    """
    is_measured = np.isfinite(centres)
    values, sites = centres[is_measured], np.array(names)[is_measured]
    if len(values) < 2:
        return dict.fromkeys(("without_low", "without_high", *WITHOUT), float("nan")) | {"weightiest_site": ""}
    without = (values.sum() - values) / (len(values) - 1)
    weightiest = int(np.abs(values - values.mean()).argmax())
    of_runs, others, error = variances[np.isfinite(variances)], np.delete(values, weightiest), np.nan
    if len(others) > 1 and len(of_runs):
        error = max(SAME, np.sqrt(max(others.var(ddof=1), of_runs.mean()) / len(others)))
    columns = contrast_columns(of_numbers(without[weightiest], error, len(others)), confidence, WITHOUT)
    return {
        "without_low": float(np.expm1(without.min())),
        "without_high": float(np.expm1(without.max())),
        "weightiest_site": str(sites[weightiest]),
        **{name: float(columns[name]) for name in WITHOUT},
    }


def slow_loads(a: Array, b: Array) -> dict[str, float]:
    """How the slow loads differ, which the location of ratios is made to ignore. `a` and `b` are times over the
    reference and the compared protocol: sites x blocks.

    mean_gain: of the arithmetic means, as the geometric mean over sites; slow_gain: of the 95th percentile of all
    loads, each relative to its site's typical time. Both have the ends (_low, _high) of two errors, from resampled
    blocks, in which both protocols stay together; NaN with fewer than LEAST_BLOCKS blocks. Sites with a single block
    are left out. long_reference, long_compared: the share of loads above LONG times their setting's median.
    """
    result = dict.fromkeys(SLOW_LOADS, float("nan"))
    for name, times in (("long_reference", a), ("long_compared", b)):
        is_long = times > LONG * median(times)[:, None]
        result[name] = float(is_long.sum() / max(1, counts(times).sum()))
    is_paired = np.isfinite(logarithms(a)) & np.isfinite(logarithms(b))
    is_paired &= is_paired.sum(axis=1, keepdims=True) > 1
    blocks = is_paired.sum(axis=1)
    blocks = blocks[blocks > 0]
    site = np.arange(len(blocks)).repeat(blocks)
    if len(site) < LEAST_BLOCKS:
        return result
    both = np.stack([a[is_paired], b[is_paired]])
    both /= np.exp(np.bincount(site, np.log(both).mean(axis=0)) / blocks)[site]
    draw = np.random.default_rng(SEED)
    some = both[:, (blocks.cumsum() - blocks)[site] + (draw.random((RESAMPLES, len(site))) * blocks[site]).astype(int)]
    of_site = np.eye(len(blocks))[site] / blocks[site, None]

    def changes(typical: Callable[[Array], Array]) -> list[Array]:
        """The log ratios of the protocols' `typical` times: as measured, and resampled."""
        return [np.subtract(*np.log(typical(times))[::-1]) for times in (both, some)]

    means, some_means = changes(lambda times: times @ of_site)
    slow, some_slow = changes(lambda times: np.quantile(times, SLOW, axis=-1))
    # Resampled blocks scatter less around their mean than the blocks do, by (blocks - 1) / blocks.
    mean_error = np.sqrt((some_means.var(axis=0) * blocks / (blocks - 1)).sum()) / len(blocks)
    for name, centre, error in (("mean", means.mean(), mean_error), ("slow", slow, some_slow.std())):
        ends = np.expm1(centre + np.array([0, -2, 2]) * error)
        result |= dict(zip((f"{name}_gain", f"{name}_low", f"{name}_high"), map(float, ends), strict=True))
    return result


def bias(a: Array, b: Array) -> Array:
    """How much the gain of the means of `b` against `a` is expected to exceed the true gain, along the last axis.

    A mean of few runs in the denominator makes a ratio too high, also on average over sites. The relative excess is the
    squared coefficient of variation of the denominator's runs divided by their number, less the relative covariance of
    both means (the second-order term of a ratio estimator; Cochran 1977, Sampling Techniques, section 6.8). NaN with
    fewer than two runs or blocks.
    """
    before, after = mean(a), mean(b)
    in_both = np.asarray(np.isfinite(a) & np.isfinite(b))
    paired_a, paired_b = np.where(in_both, a, np.nan), np.where(in_both, b, np.nan)
    runs_a, runs_b, blocks = counts(a), counts(b), in_both.sum(axis=-1)
    products = (paired_a - mean(paired_a)[..., None]) * (paired_b - mean(paired_b)[..., None])
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = np.nansum((a - before[..., None]) ** 2, axis=-1) / (runs_a - 1) / runs_a / before**2
        shared = np.nansum(products, axis=-1) / (blocks - 1) * blocks / (runs_a * runs_b) / (before * after)
        excess = after / before * (variance - np.where(blocks > 1, shared, 0))
    return np.asarray(np.where(runs_a > 1, excess, np.nan))
