"""The number of runs that a difference needs, from the scatter of a campaign's runs."""

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from statsmodels.stats.power import TTestIndPower

from analysis.samples import Array, Samples, counts

# Differences of the mean, as shares, and the probability with which a test shall find one that exists.
DIFFERENCES = (0.01, 0.02, 0.05, 0.1, 0.2)
POWER = 0.9
MOST_RUNS = 2**20


def power_table(samples: Samples, significant_p: float) -> pd.DataFrame:
    """The number of runs of each protocol that each of DIFFERENCES needs, for every network, site and metric.

    Columns: network, site, metric, runs (in all protocols together), scatter (standard deviation of ln t within a
    setting, over all protocols), and runs_1pct, runs_2pct, … (NaN without any scatter; inf for more than a million).
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.moveaxis(np.log(samples.values), 2, -2)
    logs[~np.isfinite(logs)] = np.nan
    size = counts(logs)
    middle = np.nansum(logs, axis=-1) / np.maximum(size, 1)
    squares = np.nansum((logs - middle[..., None]) ** 2, axis=(-1, -2))
    freedom = np.maximum(size - 1, 0).sum(axis=-1)
    scatter = np.sqrt(squares / np.where(freedom > 0, freedom, np.nan))
    needed = {
        f"runs_{share:.0%}".replace("%", "pct"): runs_needed(
            np.log1p(share) / np.where(scatter > 0, scatter, np.nan), significant_p
        )
        for share in DIFFERENCES
    }
    table = samples.frame({"runs": size.sum(axis=-1), "scatter": scatter, **needed})
    return table[table["runs"] > 0].reset_index(drop=True)


def runs_needed(effects: Array, significant_p: float, power: float = POWER) -> Array:
    """The smallest number of runs of each of two samples with which a two-sided t test at `significant_p` finds
    a difference of `effects` standard deviations with probability `power`; NaN for NaN."""
    is_known = np.isfinite(effects)
    low = np.full(effects.shape, 1, dtype=np.int64)
    high = np.full(effects.shape, MOST_RUNS, dtype=np.int64)
    while (high - low > 1).any():
        middle = (low + high) // 2
        enough = _power(effects, np.maximum(middle, 2), significant_p) >= power
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.asarray(np.where(is_known, np.where(high < MOST_RUNS, high, np.inf), np.nan))


def _power(effects: Array, runs: NDArray[np.int64], significant_p: float) -> Array:
    # Beyond what the distribution can be computed for, the effect or the sample is so large that the power is 1.
    power = TTestIndPower().power(np.nan_to_num(np.abs(effects), nan=1.0), runs, significant_p)
    return np.asarray(np.nan_to_num(np.asarray(power, dtype=float), nan=1.0))
