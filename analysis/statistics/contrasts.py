"""Statistics of single sites: the ratio within blocks, and what is unusual about the runs."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from analysis.statistics.contrast_table import TESTS, contrast_columns, false_discovery_rate, judged
from analysis.statistics.hypotheses import Hypotheses, Pair
from analysis.statistics.outcomes import FEW_RUNS, WILD_RATIO, WILD_SKEWNESS
from analysis.statistics.ratios import block_ratios, mean_over_sites, site_margins
from analysis.statistics.samples import Array, Samples, by_count, counts, is_constant, t_test_p

# Matches notes that ask a reader to look at the runs of a comparison; a note on too few runs does not.
UNUSUAL = "skewed|variance|of 0"
RATIO = ("ratio_gain", "ratio_low", "ratio_high")
COLUMNS = ["reference", "compared", "network", "site", "metric", *RATIO, "p"]
COLUMNS += ["p_corrected", "equivalence_p", "equivalence_p_corrected", "margin", "verdict", "note"]


def contrasts(samples: Samples, hypotheses: Hypotheses, rtt_ms: Mapping[str, float]) -> pd.DataFrame:
    """Every statistic of single sites, for every pair, network, site and metric with a run of both protocols.

    Columns: reference, compared, network, site, metric; ratio_gain (of the location of the ratios within blocks,
    `analysis.statistics.ratios`) with ratio_low and ratio_high; p and equivalence_p, both also corrected by Benjamini
    and Hochberg's false discovery rate over all rows (_corrected), and NaN with fewer than FEW_RUNS blocks, which
    decide nothing about a site; margin (the gain within which both count as equivalent) and verdict; note: what is
    unusual about the runs.
    """

    def statistics(pair: Pair, reference: Array, compared: Array) -> dict[str, NDArray[Any]]:
        ratios = block_ratios(samples, pair)
        margin = site_margins(samples, pair, hypotheses, rtt_ms)
        columns = contrast_columns(mean_over_sites(ratios[..., None, :]), hypotheses.confidence, RATIO, margin)
        has_few = counts(ratios) < FEW_RUNS
        columns |= {name: np.where(has_few, np.nan, columns[name]) for name in TESTS}
        return {**columns, "note": notes(reference, compared)}

    table = samples.compare(hypotheses.comparisons, statistics, COLUMNS)
    if not hypotheses.comparisons:
        return table.astype({"note": str})
    return judged(table, false_discovery_rate, hypotheses.significant_p, RATIO[0])[COLUMNS]


def welch_p(reference: Array, compared: Array) -> Array:
    """The p value of Welch's t test of equal means, for any variances."""
    return t_test_p(reference, compared, equal_var=False)


def difference_interval(reference: Array, compared: Array, confidence: float) -> tuple[Array, Array]:
    """Welch's interval of mean(compared) - mean(reference), in ms; NaN if either has fewer than two runs."""

    def welch(x: Array, y: Array) -> Array:
        ends = stats.ttest_ind(y, x, axis=-1, equal_var=False).confidence_interval(confidence)
        constant = is_constant(x) & is_constant(y)
        return np.where(constant[:, None], np.nan, np.stack([ends.low, ends.high], axis=1))

    ends = by_count(welch, reference, compared, outputs=(2,))
    return ends[..., 0], ends[..., 1]


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
