"""The columns of every table of contrasts: an estimate as a share, its interval, tests, corrections and the verdict."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd
from statsmodels.stats.multitest import fdrcorrection

from analysis.statistics.outcomes import EQUIVALENT, FASTER, NOT_DECIDED, SLOWER
from analysis.statistics.ratios import MeanRatio
from analysis.statistics.samples import Array

GAIN = ("gain", "gain_low", "gain_high")
CHANGE = ("change", "low", "high")
# The names of the p values of `contrast_columns`, which `corrected` corrects.
TESTS = ("p", "equivalence_p")
Correction = Callable[[Array], Array]


def contrast_columns(
    ratio: MeanRatio,
    confidence: Array | float,
    names: Sequence[str] = GAIN,
    margin: Array | float | None = None,
    *,
    as_share: bool = True,
    where_known: bool = False,
) -> dict[str, Array]:
    """The columns of contrasts from their log ratios: the estimate as a share with the ends of its interval, by these
    `names`, and `p` of no difference. With a `margin` (log ratio) also `equivalence_p`, and the `margin` as a share.

    `as_share`: False for differences that are not logarithms; these keep their unit. `where_known`: the interval is NaN
    if there are too few blocks for one (`MeanRatio.has_interval`).
    """
    is_shown = ratio.has_interval(confidence) if where_known else True
    numbers = (ratio.centre, *(np.where(is_shown, end, np.nan) for end in ratio.interval(confidence)))
    if as_share:
        numbers = tuple(map(np.expm1, numbers))
    columns = dict(zip(names, numbers, strict=True)) | {"p": ratio.difference_p()}
    if margin is not None:
        columns |= {"equivalence_p": ratio.equivalence_p(margin), "margin": np.expm1(margin)}
    return columns


def corrected(table: pd.DataFrame, correct: Correction, tests: Sequence[str] = TESTS) -> pd.DataFrame:
    """`table` with the corrected p values of `tests`, as `<name>_corrected`."""
    return table.assign(**{f"{name}_corrected": correct(table[name].to_numpy(dtype=float)) for name in tests})


def judged(
    table: pd.DataFrame, correct: Correction, significant_p: float, estimate: str = "gain", tests: Sequence[str] = TESTS
) -> pd.DataFrame:
    """`table` with corrected p values and the verdict on the column `estimate` (`analysis.statistics.outcomes`)."""
    table = corrected(table, correct, tests)
    return table.assign(verdict=verdicts(table[estimate], table, significant_p))


def holm(p_values: Array) -> Array:
    """Holm's corrected p values; NaN stays NaN and does not count.

    Statsmodels' multipletests collects garbage at every call, which takes longer than everything else here.
    """
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p)[: int(np.isfinite(p).sum())]
    result = np.full(len(p), np.nan)
    result[order] = np.minimum(1, np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1)))
    return result


def false_discovery_rate(p_values: Array) -> Array:
    """Benjamini and Hochberg's corrected p values; NaN stays NaN and does not count."""
    result = np.array(p_values, dtype=float)
    if (is_known := np.isfinite(result)).any():
        result[is_known] = fdrcorrection(result[is_known])[1]
    return result


def verdicts(gain: "pd.Series[float]", corrected: pd.DataFrame, significant_p: float) -> "pd.Series[str]":
    """Equivalent if equivalence is significant, since a difference that is shown not to matter is no win; otherwise
    faster or slower if the difference is significant; otherwise not decided.

    `corrected` has the columns p_corrected and equivalence_p_corrected.
    """
    direction = np.where(gain < 0, FASTER, SLOWER)
    otherwise = np.where(corrected["p_corrected"] < significant_p, direction, NOT_DECIDED)
    return pd.Series(np.where(corrected["equivalence_p_corrected"] < significant_p, EQUIVALENT, otherwise), gain.index)
