"""Corrections of p values for their number."""

import numpy as np
from statsmodels.stats.multitest import fdrcorrection

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


def holm_of_family(p_values: Array) -> Array:
    """Holm's corrected p values of a declared family, to which tests that could not be made (NaN) belong, too: they
    have no evidence (1)."""
    p = np.asarray(p_values, dtype=float)
    return holm(np.where(np.isnan(p), 1.0, p))


def false_discovery_rate(p_values: Array) -> Array:
    """Benjamini and Hochberg's corrected p values; NaN stays NaN and does not count."""
    p = np.asarray(p_values, dtype=float)
    result = np.full(len(p), np.nan)
    is_known = np.isfinite(p)
    if is_known.any():
        # Statsmodels' multipletests calls this, but collects garbage at every call, which takes longer than all else.
        result[is_known] = fdrcorrection(p[is_known])[1]
    return result
