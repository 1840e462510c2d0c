"""Means and gains of a campaign's runs.

Every function takes a table with a row for each attempt (the columns of `runs.csv`) and returns a table.
A setting is a site behind a network over a protocol. Times are in ms.
"""

from collections.abc import Sequence

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
from scipy import stats  # type: ignore[import-untyped]

METRICS = ("fvc", "lvc", "vc85", "si", "plt")
SETTING = ["network", "site", "protocol"]
# The paper's threshold for calling two settings different.
SIGNIFICANT_P = 0.01


def means(runs: pd.DataFrame) -> pd.DataFrame:
    """Mean of each metric over the valid runs of each setting.

    Returns columns network, site, protocol, valid and attempts (counts), and the METRICS; a setting without
    a valid run has NaN.
    """
    counts = runs.groupby(SETTING, sort=False)["valid"].agg(valid="sum", attempts="size")
    averages = runs[runs["valid"]].groupby(SETTING, sort=False)[list(METRICS)].mean()
    return counts.join(averages).reset_index()


def gains(runs: pd.DataFrame, reference: str) -> pd.DataFrame:
    """Gain of every other protocol against `reference` on the same site and network, and its p value.

    gain = (mean B - mean A) / mean A, as in the paper, so negative is faster; p is that of a one-way ANOVA
    over the valid runs of the two, NaN with fewer than two runs of either. Returns columns network, site,
    protocol, metric, gain, p.
    """
    rows = []
    valid = runs[runs["valid"]]
    for (network, site), setting in valid.groupby(["network", "site"], sort=False):
        samples = dict(list(setting.groupby("protocol", sort=False)))
        if reference not in samples:
            continue
        for protocol, group in samples.items():
            if protocol == reference:
                continue
            for metric in METRICS:
                a, b = (sample[metric].to_numpy(dtype=float) for sample in (samples[reference], group))
                rows.append((network, site, protocol, metric, gain(a, b), anova_p(a, b)))
    return pd.DataFrame(rows, columns=[*SETTING, "metric", "gain", "p"])


def gain(a: np.ndarray, b: np.ndarray) -> float:
    """Relative change of the mean from `a` to `b`; NaN when `a` has a mean of 0."""
    before = float(np.mean(a))
    return (float(np.mean(b)) - before) / before if before else float("nan")


def anova_p(a: np.ndarray, b: np.ndarray) -> float:
    """p value of a one-way ANOVA of two samples; NaN where it says nothing."""
    if min(len(a), len(b)) < 2 or (np.ptp(a) == 0 and np.ptp(b) == 0):
        return float("nan")
    return float(stats.f_oneway(a, b).pvalue)


def exclusions(runs: pd.DataFrame) -> pd.DataFrame:
    """How many attempts were excluded, by network, protocol and gate (the reason's first word).

    Returns columns network, protocol, gate, excluded, and example (one reason in full).
    """
    excluded = runs[~runs["valid"]]
    gate = excluded["reason"].str.split(":").str[0]
    grouped = excluded.assign(gate=gate).groupby(["network", "protocol", "gate"], sort=False)["reason"]
    return grouped.agg(excluded="size", example="first").reset_index()


def in_order(table: pd.DataFrame, column: str, order: Sequence[str]) -> pd.DataFrame:
    """`table` with its rows in the order in which `order` names the values of `column`; others come last."""
    rank = {name: place for place, name in enumerate(order)}
    return table.sort_values(column, key=lambda values: values.map(rank).fillna(len(rank)), kind="stable")
