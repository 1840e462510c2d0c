"""The paper's statistics: means, gains, differences, and one-way ANOVA at p < 0.01.

Times are in ms. gain = (mean of compared - mean of reference) / mean of reference; `analysis.statistics.outcomes`
defines its sign.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from analysis.statistics.hypotheses import Pair
from analysis.statistics.outcomes import FASTER, NO_DIFFERENCE, SIGNIFICANT_P, SLOWER, UNTESTED
from analysis.statistics.samples import Array, Samples, by_count, counts, t_test_p

COLUMNS = ["reference", "compared", "network", "site", "metric", "runs_reference", "runs_compared", "mean_reference"]
COLUMNS += ["mean_compared", "gain", "delta_ms", "p", "verdict"]


def gains(samples: Samples, pairs: Iterable[Pair]) -> pd.DataFrame:
    """The paper's comparison of every pair of protocols, site by site: a row for each pair, network, site and metric
    with a run of both.

    Columns: COLUMNS, with delta_ms (compared - reference) and p (one-way ANOVA; NaN if either has fewer than two runs).
    """

    def statistics(_: Pair, reference: Array, compared: Array) -> dict[str, NDArray[Any]]:
        delta_ms, p = mean(compared) - mean(reference), t_test_p(reference, compared, equal_var=True)
        return {
            "runs_reference": counts(reference),
            "runs_compared": counts(compared),
            "mean_reference": mean(reference),
            "mean_compared": mean(compared),
            "gain": gain(reference, compared),
            "delta_ms": delta_ms,
            "p": p,
            "verdict": verdict(delta_ms, p),
        }

    return samples.compare(pairs, statistics, COLUMNS)[COLUMNS]


def mean(values: Array) -> Array:
    """The mean of the finite values along the last axis; NaN if there are none."""
    number = counts(values)
    return np.asarray(np.nansum(values, axis=-1) / np.where(number, number, np.nan))


def median(values: Array) -> Array:
    """The median of the finite values along the last axis; NaN if there are none."""
    return by_count(lambda some: np.median(some, axis=-1), values, least=1)


def gain(reference: Array, compared: Array) -> Array:
    """The relative change of the mean from `reference` to `compared`, along the last axis; NaN if the former is 0."""
    before = mean(reference)
    return np.asarray((mean(compared) - before) / np.where(before == 0, np.nan, before))


def verdict(delta_ms: Array, p: Array) -> NDArray[np.object_]:
    """Faster, slower or no difference, in the paper's sense; untested if there is no p value."""
    direction = np.where(delta_ms < 0, FASTER, np.where(delta_ms > 0, SLOWER, NO_DIFFERENCE))
    return np.where(np.isnan(p), UNTESTED, np.where(p < SIGNIFICANT_P, direction, NO_DIFFERENCE)).astype(object)


def in_order(table: pd.DataFrame, **order: Sequence[str]) -> pd.DataFrame:
    """`table` with its rows sorted by the columns of these names, each in the given order, other values last."""
    places = {column: {name: place for place, name in enumerate(names)} for column, names in order.items()}
    return table.sort_values(
        list(order), key=lambda values: values.map(places[str(values.name)]).fillna(np.inf), kind="stable"
    )
