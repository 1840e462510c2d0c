"""The columns of every table of contrasts: an estimate as a share, its interval, tests, corrections and the verdict."""

from collections.abc import Callable, Sequence

import numpy as np
import pandas as pd

from analysis.outcomes import verdicts
from analysis.ratios import MeanRatio
from analysis.samples import Array

GAIN = ("gain", "gain_low", "gain_high")
CHANGE = ("change", "low", "high")
# The p values of `contrast_columns`, and of the corrected ones.
TESTS = ("p", "equivalence_p")


def contrast_columns(
    ratio: MeanRatio, confidence: float, names: Sequence[str] = GAIN, margin: Array | float | None = None
) -> dict[str, Array]:
    """Columns of contrasts from their log ratios: the estimate as a share with the ends of its interval, by these
    `names`, and `p` of no difference; with a `margin` (log ratio) also `equivalence_p`, and the `margin` as a share."""
    ends = (ratio.centre, *ratio.interval(confidence))
    columns = dict(zip(names, map(np.expm1, ends), strict=True)) | {"p": ratio.difference_p()}
    if margin is not None:
        columns |= {"equivalence_p": ratio.equivalence_p(margin), "margin": np.expm1(margin)}
    return columns


def corrected(table: pd.DataFrame, correct: Callable[[Array], Array], tests: Sequence[str] = TESTS) -> pd.DataFrame:
    """`table` with the p values of `tests` corrected, as `<name>_corrected`."""
    return table.assign(**{f"{name}_corrected": correct(table[name].to_numpy(dtype=float)) for name in tests})


def judged(
    table: pd.DataFrame,
    correct: Callable[[Array], Array],
    significant_p: float,
    estimate: str = GAIN[0],
    tests: Sequence[str] = TESTS,
) -> pd.DataFrame:
    """`table` with corrected p values and the verdict on the column `estimate` (`analysis.outcomes`)."""
    table = corrected(table, correct, tests)
    return table.assign(verdict=verdicts(table[estimate], table, significant_p))
