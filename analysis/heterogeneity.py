"""How much sites differ in what a protocol gains, and what that means for a site that was not measured."""

from functools import partial

import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.stats.meta_analysis import combine_effects

from analysis.hypotheses import Hypotheses, Pair
from analysis.ratios import block_ratios, locations
from analysis.samples import Array, Samples

# A prediction for a further site needs so many.
LEAST_SITES = 3


def heterogeneity(samples: Samples, hypotheses: Hypotheses) -> pd.DataFrame:
    """How much sites differ, for every pair, network and metric with LEAST_SITES sites of two blocks or more.

    Columns: reference, compared, network, metric, sites; tau (standard deviation between sites of the log ratio,
    Paule and Mandel's), i_squared (share of the scatter of the sites' ratios that is not the runs'), new_low and
    new_high (in which the gain of a further site like these lies; Higgins, Thompson and Spiegelhalter 2009).
    """
    rows = [
        {**pair._asdict(), "network": network, "metric": metric, **_between(*cell, hypotheses.confidence)}
        for pair, network, metric, _, *cell in _cells(samples, hypotheses)
    ]
    return pd.DataFrame(rows)


def shrunken(samples: Samples, hypotheses: Hypotheses) -> pd.DataFrame:
    """Every site's gain, drawn towards the mean of the sites by as much as its runs are uncertain (empirical Bayes).

    Columns: reference, compared, network, metric, site, gain (expm1 of the location of its log ratios), shrunken,
    shrunken_low, shrunken_high.
    """
    tables = []
    for pair, network, metric, sites, centres, variances in _cells(samples, hypotheses):
        tau_squared, mean = _between_variance(centres, variances)
        kept = tau_squared / (tau_squared + np.where(variances > 0, variances, 1e-300)) if tau_squared else 0 * centres
        middle = mean + kept * (centres - mean)
        weights = 1 / (tau_squared + variances) if tau_squared else np.where(variances > 0, 1 / variances, 0)
        mean_variance = 1 / weights.sum() if weights.sum() else 0.0
        error = np.sqrt(kept * variances + (1 - kept) ** 2 * mean_variance)
        reach = stats.norm.ppf((1 + hypotheses.confidence) / 2) * error
        gains = {"shrunken": middle, "shrunken_low": middle - reach, "shrunken_high": middle + reach}
        columns = {"gain": centres, **gains}
        tables.append(
            pd.DataFrame({**pair._asdict(), "network": network, "metric": metric, "site": sites}).assign(
                **{name: np.expm1(values) for name, values in columns.items()}
            )
        )
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()
