"""Statistics of single sites and of sites like these, from the ratios within blocks; what is unusual about the runs."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from analysis.statistics.contrast_table import TESTS, contrast_columns, false_discovery_rate, judged
from analysis.statistics.hypotheses import Hypotheses, Pair
from analysis.statistics.intervals import over_runs
from analysis.statistics.outcomes import FEW_RUNS, PAPER_VERDICTS, WILD_RATIO, WILD_SKEWNESS
from analysis.statistics.ratios import block_ratios, mean_over_sites, site_margins
from analysis.statistics.samples import OVER_SITES, Array, Samples, by_count, counts, is_constant

# Matches notes that ask a reader to look at the runs of a comparison; a note on too few runs does not.
UNUSUAL = "skewed|variance|of 0"
RATIO = ("ratio_gain", "ratio_low", "ratio_high")
COLUMNS = ["reference", "compared", "network", "site", "metric", *RATIO, "p"]
COLUMNS += ["p_corrected", "equivalence_p", "equivalence_p_corrected", "margin", "verdict", "note"]
# The columns of `over_sites` that count sites by the paper's verdict on them.
SITES = {verdict.replace(" ", "_"): verdict for verdict in PAPER_VERDICTS}
MEANS = [*OVER_SITES, "sites", "gain", "gain_low", "gain_high", "delta_ms", "delta_ms_low", "delta_ms_high", *RATIO]


def contrasts(samples: Samples, hypotheses: Hypotheses, rtt_ms: Mapping[str, float]) -> pd.DataFrame:
    """Every statistic of single sites, for every pair, network, site and metric with a run of both protocols.

    Columns: COLUMNS; ratio_gain is of the location of the ratios within blocks (`analysis.statistics.ratios`), with the
    ends of its interval; p and equivalence_p, both also corrected by Benjamini and Hochberg's false discovery rate over
    all rows, are NaN with fewer than FEW_RUNS blocks, which decide nothing about a site; margin: the gain within which
    both count as equivalent; note: what is unusual about the runs.
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


def over_sites(comparisons: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """The means over sites of the gains in `comparisons`, the tables of `contrasts` and of
    `analysis.statistics.gain.gains` side by side.

    The sites count as a sample of sites like them. So the intervals (Student's; NaN with fewer than two sites) hold
    beyond the measured sites, and are wide if these are few. One row for each pair, network and metric. Columns: MEANS,
    with gain and delta_ms (the paper's) and ratio_gain (of the mean of the locations of log ratios); and SITES, how
    many sites have each of the paper's verdicts.
    """
    rows = []
    if len(comparisons):
        values = np.stack([comparisons["gain"], comparisons["delta_ms"], np.log1p(comparisons[RATIO[0]])])
        verdicts = comparisons["paper_verdict"].to_numpy(dtype=object)
        # Slices of arrays, since those of tables take long, and there are hundreds.
        numbered = comparisons[OVER_SITES].assign(place=np.arange(len(comparisons)))
        for key, places in numbered.groupby(OVER_SITES, sort=False)["place"]:
            means = [over_runs(of[~np.isnan(of)], confidence) for of in values[:, places]]
            gain, delta_ms, ratio = ([one.mean, one.low, one.high] for one in means)
            numbers = [(verdicts[places] == verdict).sum() for verdict in SITES.values()]
            rows.append([*key, means[0].runs, *gain, *delta_ms, *np.expm1(ratio), *numbers])
    return pd.DataFrame(rows, columns=[*MEANS, *SITES])


def difference_interval(reference: Array, compared: Array, confidence: float) -> tuple[Array, Array]:
    """Welch's interval of mean(compared) - mean(reference), in ms; NaN if either has fewer than two runs."""

    def welch(x: Array, y: Array) -> Array:
        ends = stats.ttest_ind(y, x, axis=-1, equal_var=False).confidence_interval(confidence)
        return np.where((is_constant(x) & is_constant(y))[:, None], np.nan, np.stack([ends.low, ends.high], axis=1))

    ends = by_count(welch, reference, compared, outputs=(2,))
    return ends[..., 0], ends[..., 1]


def notes(reference: Array, compared: Array) -> NDArray[np.object_]:
    """Remarks on the runs of each cell, mostly empty: whether they are few, and what is unusual about them."""
    result = np.full(reference.shape[:-1], "", dtype=object)
    both = np.stack([reference, compared])
    fewest = counts(both).min(axis=0)
    are_constant = by_count(lambda x: is_constant(x).astype(float), both) == 1
    for applies, remark in (
        (fewest < 2, "one run"),
        ((fewest >= 2) & (fewest < FEW_RUNS), f"fewer than {FEW_RUNS} runs"),
        (are_constant.all(axis=0), "no variance"),
        ((by_count(_are_wild, both, least=3) == 1).any(axis=0), "wildly skewed"),
        ((both <= 0).any(axis=(0, -1)), "a time of 0"),
    ):
        result[applies] = [f"{before}; {remark}".lstrip("; ") for before in result[applies]]
    return result


def _are_wild(x: Array) -> Array:
    """1 for each of the cells `x` that is wildly skewed, else 0."""
    skewness = np.where(is_constant(x), 0, stats.skew(x, axis=1))
    longest = x[:, -1] / np.maximum(np.median(x, axis=1), 1e-9)
    return ((np.abs(skewness) > WILD_SKEWNESS) | (longest > WILD_RATIO)).astype(float)


def unusual(table: pd.DataFrame) -> pd.DataFrame:
    """The comparisons in the table of `contrasts` whose runs are unusual in another way than being few."""
    rows = table[table["note"].str.contains(UNUSUAL)]
    return rows[["network", "site", "compared", "reference", "metric", "note"]].reset_index(drop=True)
