"""Corrections of p values for their number."""

import numpy as np

from analysis.samples import Array


def holm(p_values: Array) -> Array:
    """Holm's corrected p values; NaN stays NaN and does not count.

    Statsmodels' does the same, but collects garbage at every call, which takes longer than all else here.
    """
    p = np.asarray(p_values, dtype=float)
    order = np.argsort(p)[: int(np.isfinite(p).sum())]
    result = np.full(len(p), np.nan)
    result[order] = np.minimum(1, np.maximum.accumulate(p[order] * np.arange(len(order), 0, -1)))
    return result
