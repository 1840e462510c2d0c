"""Metrics that contradict a decided one: the same blocks, read from another time of the load."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from analysis.statistics.contrast_table import GAIN, contrast_columns, corrected, holm
from analysis.statistics.hypotheses import Hypotheses, Pair
from analysis.statistics.outcomes import EQUIVALENT, NOT_DECIDED
from analysis.statistics.ratios import block_ratios, mean_over_sites
from analysis.statistics.samples import OVER_SITES, Samples

COLUMNS = [*OVER_SITES, "other", *GAIN, "is_declared", "p", "p_corrected", "word"]
# A metric follows by less if it is shown to gain less than this share of what the decided metric gains.
LESS = 1 / 3
# How a metric contradicts the decided one, the plainest first: LCP does not follow SI.
OPPOSED, DIFFERING, NOT_FOLLOWING = "contradicts", "differs from", "does not follow"
LESSENED = "changes by less than a third as much as"
WORDS = (OPPOSED, DIFFERING, NOT_FOLLOWING, LESSENED)


def other_metrics(samples: Samples, hypotheses: Hypotheses, confirmatory: pd.DataFrame) -> pd.DataFrame:
    """The metrics beside the first decided metric of each pair and network of the family; `confirmatory` is the table
    of that name.

    Columns: reference, compared, network, metric (the decided one), other (the other metric); gain of the other, with
    gain_low and gain_high; is_declared (whether the other is in the family); p of no difference between both metrics'
    log ratios within blocks, and p_corrected (Holm's, for the others beside one verdict); word (one of WORDS, empty if
    the other does not contradict). A metric contradicts if both are shown to differ, and its interval reaches 0 or has
    the other sign, or its gain is less than a third (beside *equivalent*: if its interval lies beyond the margin).
    """
    decided = confirmatory[confirmatory["verdict"] != NOT_DECIDED]
    tables = []
    for (reference, compared), rows in decided.groupby(["reference", "compared"], sort=False):
        ratios = np.swapaxes(block_ratios(samples, Pair(str(reference), str(compared))), 1, 2)
        for row in rows.drop_duplicates("network").to_dict("records"):
            here = ratios[samples.networks.index(row["network"])]
            decided = here[samples.metrics.index(row["metric"])]
            has_both = np.isfinite(decided) & np.isfinite(here)
            ratio = contrast_columns(mean_over_sites(np.where(has_both, here, np.nan)), hypotheses.confidence)
            gains = {name: ratio[name] for name in GAIN}
            columns = {name: row[name] for name in OVER_SITES} | {"other": samples.metrics}
            columns |= gains | {"p": mean_over_sites(here - decided).difference_p()}
            table = pd.DataFrame(columns).assign(word=[_word(row, *one) for one in zip(*gains.values(), strict=True)])
            tables.append(corrected(table[table["other"] != row["metric"]], holm, ["p"]))
    if not tables:
        return pd.DataFrame(columns=COLUMNS)
    table = pd.concat(tables, ignore_index=True)
    is_shown = table["p_corrected"] < hypotheses.significant_p
    is_declared = table["other"].isin(hypotheses.family_metrics)
    return table.assign(word=table["word"].where(is_shown, ""), is_declared=is_declared)[COLUMNS]


def _word(decided: Mapping[str, Any], gain: float, low: float, high: float) -> str:
    """How another metric's gain with its interval contradicts the row of the `decided` metric, if both differ."""
    if decided["verdict"] == EQUIVALENT:
        return DIFFERING if low > decided["margin"] or high < 1 / (1 + decided["margin"]) - 1 else ""
    sign = np.sign(decided["gain"])
    least, most = sorted((sign * low, sign * high))
    if most < 0:
        return OPPOSED
    if least <= 0:
        return NOT_FOLLOWING
    return LESSENED if np.log1p(gain) / np.log1p(decided["gain"]) < LESS else ""
