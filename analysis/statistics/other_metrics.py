"""Metrics that contradict a decided one: the same blocks, read from another time of the load."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.statistics.contrast_table import GAIN, contrast_columns, corrected, holm
from analysis.statistics.hypotheses import Hypotheses, Pair
from analysis.statistics.outcomes import EQUIVALENT, NOT_DECIDED
from analysis.statistics.ratios import MeanRatio, block_ratios, mean_over_sites
from analysis.statistics.samples import OVER_SITES, Array, Samples, by_metric

COLUMNS = [*OVER_SITES, "other", *GAIN, "is_declared", "p", "p_corrected", "word"]
# How a metric contradicts the decided one, the plainest first: LCP does not follow SI.
OPPOSED, DIFFERING, NOT_FOLLOWING = "contradicts", "differs from", "does not follow"
WORDS = (OPPOSED, DIFFERING, NOT_FOLLOWING)


def other_metrics(samples: Samples, hypotheses: Hypotheses, confirmatory: pd.DataFrame) -> pd.DataFrame:
    """The metrics beside the first decided metric of each pair and network of the family; `confirmatory` is the table
    of that name.

    Columns: OVER_SITES (metric: the decided one), other (the other metric); gain of the other with its interval;
    is_declared (whether the other is in the family); p of no difference between both metrics' log ratios within blocks,
    and p_corrected (Holm's, for the others beside one verdict); word (one of WORDS, empty if the other does not
    contradict). A metric has a word if both are shown to differ, and if it is shown to have the other sign, or if its
    interval reaches 0 (beside *equivalent*: if it is shown to lie beyond the margin). These second tests have
    Bonferroni's correction for the others beside one verdict.
    """
    decided = confirmatory[confirmatory["verdict"] != NOT_DECIDED]
    tables = []
    for (reference, compared), rows in decided.groupby(["reference", "compared"], sort=False):
        ratios = by_metric(block_ratios(samples, Pair(str(reference), str(compared))))
        for row in rows.drop_duplicates("network").to_dict("records"):
            here = ratios[samples.networks.index(row["network"])]
            decided = here[samples.metrics.index(row["metric"])]
            has_both = np.isfinite(decided) & np.isfinite(here)
            mean = mean_over_sites(np.where(has_both, here, np.nan))
            ratio = contrast_columns(mean, hypotheses.confidence)
            level = hypotheses.significant_p / max(1, len(samples.metrics) - 1)
            columns = {name: row[name] for name in OVER_SITES} | {"other": samples.metrics} | ratio
            columns |= {"p": mean_over_sites(here - decided).difference_p(), "word": _words(row, mean, ratio, level)}
            table = pd.DataFrame(columns)
            tables.append(corrected(table[table["other"] != row["metric"]], holm, ["p"]))
    if not tables:
        return pd.DataFrame(columns=COLUMNS)
    table = pd.concat(tables, ignore_index=True)
    is_shown = table["p_corrected"] < hypotheses.significant_p
    is_declared = table["other"].isin(hypotheses.family_metrics)
    return table.assign(word=table["word"].where(is_shown, ""), is_declared=is_declared)[COLUMNS]


def _words(row: Mapping[str, Any], mean: MeanRatio, ratio: Mapping[str, Array], level: float) -> NDArray[np.str_]:
    """How each metric contradicts the decided one of `row`, if both differ. `mean` and `ratio`: the metrics' means over
    sites and the intervals of these; `level`: of each test."""
    if row["verdict"] == EQUIVALENT:
        margin = np.log1p(row["margin"])
        is_beyond = 2 * np.minimum(mean.above_p(margin), mean.below_p(-margin)) < level
        return np.where(is_beyond, DIFFERING, "")
    is_slower = row["gain"] > 0
    is_opposed = (mean.below_p(0) if is_slower else mean.above_p(0)) < level
    reaches_none = ratio[GAIN[1]] <= 0 if is_slower else ratio[GAIN[2]] >= 0
    return np.select([is_opposed, reaches_none], [OPPOSED, NOT_FOLLOWING], "")
