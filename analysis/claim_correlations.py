"""What the paper says over its sites: how gains depend on what a site is like, and whether metrics agree."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, permutations

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats
from statsmodels.stats.multitest import multipletests

from analysis.claim_tests import (
    CORRELATION,
    LEAST_SITES,
    ClaimInputs,
    Condition,
    below_p_values,
    estimated,
    jackknife,
    not_measured,
    within_p,
)
from analysis.hypotheses import Pair
from analysis.ratios import block_ratios, locations, mean_over_sites
from analysis.samples import Array, Samples
from analysis.text import label, pair_label

# A rank correlation below this is little influence: it explains less than a quarter of how the sites are ranked.
LITTLE_INFLUENCE = 0.5
# Metrics whose gains are correlated more closely than this say the same.
SAME_CORRELATION = 0.9
AGREEMENT_COLUMNS = ["reference", "compared", "network", "metric", "other_metric", "sites", "correlation"]
AGREEMENT_COLUMNS += ["correlation_low", "correlation_high", "opposite", "opposite_sites", "opposite_p"]


def little_influence(
    inputs: ClaimInputs, *, pair: Pair, networks: Sequence[str], metric: str, facts: Sequence[str]
) -> list[Condition]:
    """The sites' gains hardly go with any of `facts`: the mean over networks of their rank correlations is small.

    Its interval is the jackknife's over sites, of Fisher's z. The noise of the runs makes every correlation smaller.
    """
    samples, site_facts = inputs.samples, inputs.site_facts
    missing = not_measured(samples, pair, networks, [metric])
    if not missing:
        places = [samples.networks.index(name) for name in networks]
        gains = locations(block_ratios(samples, pair)[places, :, samples.metrics.index(metric)])[0]
    conditions = []
    for fact in facts:
        gain = f"{pair_label(pair.compared, pair.reference)}, {label(metric)}"
        subject = f"the rank correlation of sites' gains ({gain}) with {fact}"
        limit = f"less than ±{LITTLE_INFLUENCE} is little"
        condition = Condition(subject, CORRELATION, limit=limit, missing=missing)
        if not missing:
            values = np.array([site_facts.get(site, {}).get(fact, np.nan) for site in samples.sites], dtype=float)
            is_known = np.isfinite(gains).all(axis=0) & np.isfinite(values)
            condition = _influence(gains[:, is_known], values[is_known], condition, fact, inputs.hypotheses.confidence)
        conditions.append(condition)
    return conditions


def metrics_disagree(inputs: ClaimInputs, *, pairs: Sequence[Pair], metrics: Sequence[str]) -> list[Condition]:
    """Some site is faster in one metric and slower in another; against it speaks that all are closely correlated.

    Of the first of `pairs` that the campaign has, over all its networks and those of `metrics` that it has.
    """
    samples = inputs.samples
    measured = [metric for metric in metrics if metric in samples.metrics]
    pair = next((pair for pair in pairs if pair.is_of(samples.protocols)), pairs[0])
    condition = Condition("the gains in two metrics", CORRELATION)
    missing = not_measured(samples, pair, [], metrics if len(measured) < 2 else [])
    if missing:
        return [replace(condition, missing=missing)]
    table = metric_agreement(samples, pair, measured, inputs.hypotheses.significant_p, inputs.hypotheses.confidence)
    if not table["opposite_p"].notna().any():
        return [replace(condition, missing=(f"two blocks of a site: {condition.subject}",))]
    opposite = table[table["opposite"] > 0]
    row = (opposite.sort_values("opposite_p") if len(opposite) else table.sort_values("correlation")).iloc[0]
    where = f"{label(row['metric'])} and {label(row['other_metric'])} behind {label(row['network'])}"
    subject = f"the rank correlation of sites' gains ({pair_label(pair.compared, pair.reference)}) in {where}"
    if row["opposite"]:
        subject += f", of which {row['opposite']} point in opposite directions ({row['opposite_sites']}),"
    errors = 1 / np.sqrt(np.maximum(table["sites"] - 3, 1) / 1.06)
    distances = (np.arctanh(table["correlation"].clip(-0.9999, 0.9999)) - np.arctanh(SAME_CORRELATION)) / errors
    return [
        replace(
            condition,
            subject=subject,
            value=float(row["correlation"]),
            low=float(row["correlation_low"]),
            high=float(row["correlation_high"]),
            limit=f"above {SAME_CORRELATION} they say the same",
            sites=int(row["sites"]),
            p_for=float(table["opposite_p"].min()),
            p_against=float(np.nan_to_num(stats.norm.sf(distances), nan=1.0).max()),
        )
    ]


def metric_agreement(
    samples: Samples, pair: Pair, metrics: Sequence[str], significant_p: float, confidence: float
) -> pd.DataFrame:
    """A row for each network and two of `metrics`: do they say the same of the sites?

    Columns: reference, compared, network, metric, other_metric, sites (with both); correlation (Spearman's, of the
    sites' gains) with correlation_low and correlation_high (NaN with LEAST_SITES or fewer); opposite (how many
    sites are faster in the one and slower in the other, each significantly), opposite_sites (their names) and
    opposite_p (the least p value of these, over all rows, sites and directions corrected by Holm).
    """
    ratios = block_ratios(samples, pair)
    sites = mean_over_sites(ratios[..., None, :])
    faster, slower = below_p_values(sites, 0), below_p_values(replace(sites, centre=-sites.centre), 0)
    rows, p_values = [], []
    for (n, network), (one, other) in (
        (cell, pair_of) for cell in enumerate(samples.networks) for pair_of in combinations(metrics, 2)
    ):
        i, j = samples.metrics.index(one), samples.metrics.index(other)
        centres = sites.centre[n][:, [i, j]]
        is_measured = np.isfinite(centres).all(axis=1)
        numbers = _correlation(centres[is_measured], confidence)
        rows.append([*pair, network, one, other, int(is_measured.sum()), *numbers])
        directions = [np.maximum(faster[n, :, x], slower[n, :, y]) for x, y in permutations((i, j))]
        p_values.append(np.minimum(1, 2 * np.minimum(*directions)))
    table = pd.DataFrame(rows, columns=AGREEMENT_COLUMNS[:-3])
    p = np.array(p_values).reshape(len(rows), len(samples.sites))
    corrected = np.full(p.shape, np.nan)
    if np.isfinite(p).any():
        corrected[np.isfinite(p)] = multipletests(p[np.isfinite(p)], method="holm")[1]
    is_opposite = corrected < significant_p
    names = np.array(samples.sites, dtype=object)
    return table.assign(
        opposite=is_opposite.sum(axis=1),
        opposite_sites=[", ".join(names[row]) for row in is_opposite],
        opposite_p=np.where(np.isnan(corrected), np.inf, corrected).min(axis=1, initial=np.inf),
    ).replace({"opposite_p": {np.inf: np.nan}})


def _influence(gains: Array, fact: Array, condition: Condition, name: str, confidence: float) -> Condition:
    """`condition` with the mean over networks of the correlations of `gains` (networks x sites) with `fact`."""
    sites = len(fact)
    condition = replace(condition, sites=sites)
    if sites <= LEAST_SITES:
        return replace(condition, missing=(f"{name} of more than {LEAST_SITES} sites with runs in all networks",))
    if not np.ptp(fact) or not np.ptp(gains, axis=1).all():
        return replace(condition, missing=(f"sites that differ in {name}, and in their gains",))

    def z(kept: NDArray[np.bool_]) -> float:
        correlations = [stats.spearmanr(row[kept], fact[kept]).statistic for row in gains]
        return float(np.arctanh(np.clip(np.nan_to_num(correlations).mean(), -0.9999, 0.9999)))

    mean = jackknife(z, sites)
    result = estimated(mean, condition, confidence)
    p_for = within_p(mean, float(np.arctanh(LITTLE_INFLUENCE)))
    value, low, high = np.tanh([result.value, result.low, result.high]).tolist()
    return replace(result, value=value, low=low, high=high, p_for=p_for, p_against=1 - p_for)


def _correlation(values: Array, confidence: float) -> tuple[float, float, float]:
    """Spearman's correlation of two columns, with its interval (Fieller, Hartley and Pearson 1957)."""
    if len(values) <= LEAST_SITES or not np.ptp(values, axis=0).all():
        return float("nan"), float("nan"), float("nan")
    correlation = float(stats.spearmanr(*values.T).statistic)
    reach = stats.norm.ppf((1 + confidence) / 2) * np.sqrt(1.06 / (len(values) - 3))
    z = np.arctanh(np.clip(correlation, -0.9999, 0.9999))
    return correlation, float(np.tanh(z - reach)), float(np.tanh(z + reach))
