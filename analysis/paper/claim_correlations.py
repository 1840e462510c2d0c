"""The paper's claims over its sites: how gains depend on the properties of a site, and whether metrics agree."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pandas as pd
from scipy import stats

from analysis.paper.claim_tests import (
    CORRELATION,
    LEAST_SITES,
    Claim,
    ClaimInputs,
    Condition,
    beyond_p,
    jackknife,
    not_measured,
)
from analysis.statistics.contrast_table import holm
from analysis.statistics.heterogeneity import SiteRatios, site_ratios
from analysis.statistics.hypotheses import Hypotheses, Pair
from analysis.statistics.ratios import MeanRatio, block_ratios, mean_over_sites
from analysis.statistics.samples import Array, Samples, counts
from analysis.text import label, pair_label, percent, share

# A rank correlation below this is little influence: it explains less than a quarter of the sites' ranking.
LITTLE_INFLUENCE = 0.5
# Below this reliability, most of the scatter of the gains comes from the runs, so their correlations say nothing.
LEAST_RELIABILITY = 0.5
# How often noise is added to gains to estimate their reliability; and the seed of that noise.
REPETITIONS, SEED = 50, 2019
# Two standard deviations are alike if neither is this many times the other.
SAME_SPREAD = 1.5
# Metrics whose gains are correlated more closely than this agree.
SAME_CORRELATION = 0.9
AGREEMENT_COLUMNS = ["reference", "compared", "network", "metric", "other_metric", "sites", "correlation"]
AGREEMENT_COLUMNS += ["correlation_low", "correlation_high", "opposite", "opposite_sites", "opposite_p"]


def little_influence(inputs: ClaimInputs, claim: Claim) -> list[Condition]:
    """The sites' gains hardly depend on any of `facts`: the mean over networks of their rank correlations is small, or
    with `each_network` that on each of them.

    The noise of the runs makes every correlation smaller, so with few enough runs anything would seem to have little
    influence. Therefore each network's correlation is divided by the root of the reliability of its gains (Spearman
    1904, The proof and measurement of association between two things). If the reliability is below LEAST_RELIABILITY on
    any network, the claim cannot be shown. The evidence against the claim is the measured correlation, since the true
    one is larger. The interval is the jackknife's over sites, of Fisher's z.
    """
    samples, pair, metric = inputs.samples, claim.pairs[0], claim.metrics[0]
    missing = not_measured(inputs, networks=claim.networks, protocols=pair, metrics=[metric])
    gain = f"{pair_label(pair.compared, pair.reference)}, {label(metric)}"
    limit = f"less than ±{LITTLE_INFLUENCE} is little"
    conditions = []
    groups = [(name,) for name in claim.networks] if claim.each_network else [claim.networks]
    for fact, networks in product(claim.facts, groups):
        subject = f"the rank correlation of sites' gains ({gain}) with {fact.replace('_', ' ')}"
        subject += f" on {label(networks[0])}" if claim.each_network else ""
        condition = Condition(subject, CORRELATION, limit=limit, missing=missing)
        if not missing:
            places = [samples.networks.index(name) for name in networks]
            ratios = block_ratios(samples, pair)[places, :, samples.metrics.index(metric)]
            condition = _influence(inputs, condition, ratios, fact, networks)
        conditions.append(condition)
    return conditions


def spread_alike(inputs: ClaimInputs, claim: Claim) -> list[Condition]:
    """The changes of two pairs scatter alike over the sites, so that their distributions have one shape but for their
    place.

    The ratio of the standard deviations of the sites' log ratios, without the runs' share of their variances. If that
    share is more than LEAST_RELIABILITY leaves, the ratio is not known. The interval is the jackknife's over sites.
    """
    samples, metric, network = inputs.samples, claim.metrics[0], claim.networks[0]
    one, other = (pair_label(pair.compared, pair.reference) for pair in claim.pairs)
    subject = f"the scatter over sites of {other} on {label(network)} in {label(metric)}, over that of {one},"
    limit = f"{percent(1 / SAME_SPREAD - 1)} to {percent(SAME_SPREAD - 1)} counts as one shape"
    protocols = dict.fromkeys(name for pair in claim.pairs for name in pair)
    missing = not_measured(inputs, networks=[network], protocols=protocols, metrics=[metric])
    condition = Condition(subject, limit=limit, missing=missing)
    if missing:
        return [condition]
    place = samples.networks.index(network), slice(None), samples.metrics.index(metric)
    ratios = np.array([block_ratios(samples, pair)[place] for pair in claim.pairs])
    is_known = counts(ratios).all(axis=0)
    runs = sum(int(counts(samples.of(name)[place])[is_known].sum()) for name in protocols)
    condition = replace(condition, sites=int(is_known.sum()), runs=runs)
    if condition.sites <= LEAST_SITES:
        return [condition.lacks(f"more than {LEAST_SITES} sites with all of it")]
    sites = [site_ratios(of_pair[is_known]) for of_pair in ratios]
    centres, noise = np.array([of.centres for of in sites]), np.array([of.variances for of in sites])
    total = centres.var(axis=1, ddof=1)
    if not (noise.mean(axis=1) < (1 - LEAST_RELIABILITY) * total).all():
        return [condition.lacks("gains that scatter more with the sites than with the runs")]
    mean, same = jackknife(_log_spread, centres, noise), float(np.log(SAME_SPREAD))
    p_values = float(mean.equivalence_p(same)), beyond_p(mean, same)
    return [condition.estimated(mean, inputs.hypotheses.confidence).judged(p_values)]


def _log_spread(centres: Array, noise: Array) -> float:
    """The log ratio of the second row's standard deviation to the first's, both without the noise."""
    first, second = np.maximum(centres.var(axis=1, ddof=1) - noise.mean(axis=1), 1e-12)
    return float(np.log(second / first) / 2)


def few_gain_more(inputs: ClaimInputs, claim: Claim) -> list[Condition]:
    """On each network and in each metric, some site gains more than twice as much as the others on average (or gains
    at all, if these do not); the evidence against this is that no site does.

    For: the smallest p value of a site, times their number. Against: the largest.
    """
    samples, pair, conditions = inputs.samples, claim.pairs[0], []
    for network, metric in product(claim.networks, claim.metrics):
        subject = f"{pair_label(pair.compared, pair.reference)} on {label(network)} in {label(metric)}"
        missing = not_measured(inputs, networks=[network], protocols=pair, metrics=[metric])
        condition = Condition(subject, limit="below 0 a site gains more than twice as much", missing=missing)
        if not missing:
            place = samples.networks.index(network), slice(None), samples.metrics.index(metric)
            ratios = block_ratios(samples, pair)[place]
            blocks = counts(ratios)
            names = [name for name, number in zip(samples.sites, blocks, strict=True) if number]
            condition = _outlying(inputs, condition, site_ratios(ratios[blocks > 0]), names, 2 * int(blocks.sum()))
        conditions.append(condition)
    return conditions


def _outlying(
    inputs: ClaimInputs, condition: Condition, sites: SiteRatios, names: Sequence[str], runs: int
) -> Condition:
    """`condition` with the largest gain of a site beyond twice the mean gain of the others; `runs`: of all sites."""
    size = len(names)
    condition = replace(condition, sites=size, runs=runs)
    if size <= LEAST_SITES:
        return condition.lacks(f"more than {LEAST_SITES} sites with all of it")
    if not sites.are_known:
        return condition.lacks("two blocks of a site")
    centres, variances = sites.centres, sites.variances
    twice_the_others = np.minimum(2 * (centres.sum() - centres) / (size - 1), 0)
    error = np.sqrt(variances + 4 * (variances.sum() - variances) / (size - 1) ** 2)
    excess = MeanRatio(centres - twice_the_others, error, sites.freedom, np.ones(size, dtype=np.int64))
    below_p = excess.below_p(0)
    most = int(np.argmin(below_p))
    p_values = min(1.0, size * float(below_p[most])), float(excess.above_p(0).max())
    strongest = MeanRatio(*(np.asarray(values)[most] for values in vars(excess).values()))
    subject = f"the change of {names[most]} beyond twice that of the others ({condition.subject})"
    condition = replace(condition, subject=subject)
    return condition.estimated(strongest, inputs.hypotheses.confidence).judged(p_values)


def _influence(
    inputs: ClaimInputs, condition: Condition, ratios: Array, name: str, networks: Sequence[str]
) -> Condition:
    """`condition` with the mean over `networks` of the correlations of the sites' gains with the fact `name`; `ratios`:
    networks x sites x blocks."""
    fact = np.array([inputs.site_facts.get(site, {}).get(name, np.nan) for site in inputs.samples.sites], dtype=float)
    runs = 2 * counts(ratios)
    is_known = runs.all(axis=0) & np.isfinite(fact)
    fact, ratios, runs = fact[is_known], ratios[:, is_known], runs[:, is_known]
    condition = replace(condition, sites=len(fact), runs=int(runs.sum()))
    if len(fact) <= LEAST_SITES:
        return replace(
            condition, missing=(f"{name.replace('_', ' ')} of more than {LEAST_SITES} sites with runs on all networks",)
        )
    of_networks = [site_ratios(of_network) for of_network in ratios]
    gains = np.array([of_network.centres for of_network in of_networks])
    variances = np.array([of_network.variances for of_network in of_networks])
    if not np.ptp(fact) or not np.ptp(gains, axis=1).all():
        return replace(condition, missing=(f"sites that differ in {name}, and in their gains",))
    if not np.isfinite(variances).all():
        return condition.lacks("two blocks of a site")
    noise = np.random.default_rng(SEED).standard_normal((REPETITIONS, *gains.shape)) * np.sqrt(variances)
    little, of_gains = float(np.arctanh(LITTLE_INFLUENCE)), reliability(gains, noise)
    mean = plain = jackknife(_mean_z, gains, fact)
    p_for = 1.0
    if abs(plain.centre) >= little:
        p_for = float(plain.equivalence_p(little))
    elif of_gains.min() >= LEAST_RELIABILITY:
        mean = jackknife(_true_z, gains, fact, noise)
        p_for = float(mean.equivalence_p(little))
        condition = replace(condition, subject=f"{condition.subject}, corrected for the noise of the runs,")
    else:
        where = label(networks[int(of_gains.argmin())])
        noisy = f"of how the gains scatter on {where} only {share(of_gains.min())} is not the runs'"
        condition = replace(condition, limit=f"{condition.limit}, but {noisy}, which hides any influence")
    return condition.estimated(mean, inputs.hypotheses.confidence).judged((p_for, beyond_p(plain, little)))


def metrics_disagree(inputs: ClaimInputs, claim: Claim) -> list[Condition]:
    """Some site is faster in one metric and slower in another; the evidence against this is that all metrics are
    closely correlated.

    The test takes the first of the pairs that was measured side by side, all networks, and those of the metrics that
    the campaign has. A protocol that was added later shares no block with the others.
    """
    samples = inputs.samples
    measured = [metric for metric in claim.metrics if metric in samples.metrics]
    present = samples.measured(claim.pairs)
    condition = Condition("the gains in two metrics", CORRELATION)
    protocols, metrics = () if present else claim.pairs[0], () if len(measured) > 1 else claim.metrics
    if missing := not_measured(inputs, protocols=protocols, metrics=metrics):
        return [replace(condition, missing=missing)]
    tables = (metric_agreement(samples, pair, claim.metrics, inputs.hypotheses) for pair in present)
    table = next((table for table in tables if table["opposite_p"].notna().any()), None)
    if table is None:
        return [condition.lacks("two blocks of a site")]
    opposite = table[table["opposite"] > 0]
    row = (opposite.sort_values("opposite_p") if len(opposite) else table.sort_values("correlation")).iloc[0]
    where = f"{label(row['metric'])} and {label(row['other_metric'])} on {label(row['network'])}"
    subject = f"the rank correlation of sites' gains ({pair_label(row['compared'], row['reference'])}) in {where}"
    if row["opposite"]:
        subject += f", of which {row['opposite']} point in opposite directions ({row['opposite_sites']}),"
    errors = 1 / np.sqrt(np.maximum(table["sites"] - 3, 1) / 1.06)
    distances = (np.arctanh(table["correlation"].clip(-0.9999, 0.9999)) - np.arctanh(SAME_CORRELATION)) / errors
    blocks = block_ratios(samples, Pair(row["reference"], row["compared"]))[samples.networks.index(row["network"])]
    runs = 2 * int(counts(blocks[:, samples.metrics.index(row["metric"])]).sum())
    value, low, high = (float(row[name]) for name in ("correlation", "correlation_low", "correlation_high"))
    limit = f"above {SAME_CORRELATION} they say the same"
    condition = Condition(subject, CORRELATION, value, low, high, limit, sites=int(row["sites"]), runs=runs)
    p_against = float(np.nan_to_num(stats.norm.sf(distances), nan=1.0).max())
    return [condition.judged((float(table["opposite_p"].min()), p_against))]


def metric_agreements(samples: Samples, hypotheses: Hypotheses, metrics: Sequence[str]) -> pd.DataFrame:
    """`metric_agreement` of every comparison of `hypotheses`, over the networks and `metrics` that have blocks of it.
    The p values of each pair are corrected separately."""
    pairs = samples.measured(hypotheses.comparisons)
    tables = [metric_agreement(samples, pair, metrics, hypotheses) for pair in pairs]
    table = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame(columns=AGREEMENT_COLUMNS)
    return table[table["sites"] > 0].reset_index(drop=True)


def metric_agreement(samples: Samples, pair: Pair, metrics: Sequence[str], hypotheses: Hypotheses) -> pd.DataFrame:
    """A row for each network and each two of `metrics` that `samples` have: whether both agree on the sites.

    Columns: reference, compared, network, metric, other_metric, sites (with both); correlation (Spearman's, of the
    sites' gains) with correlation_low and correlation_high (NaN with LEAST_SITES or fewer); opposite (how many sites
    are faster in one metric and slower in the other, each significantly), opposite_sites (their names) and opposite_p
    (the smallest p value of such a site, corrected by Holm over all rows, sites and directions).
    """
    sites = mean_over_sites(block_ratios(samples, pair)[..., None, :])
    faster, slower = sites.below_p(0), sites.above_p(0)
    rows, p_values = [], []
    measured = [metric for metric in metrics if metric in samples.metrics]
    for (n, network), (one, other) in product(enumerate(samples.networks), combinations(measured, 2)):
        i, j = samples.metrics.index(one), samples.metrics.index(other)
        centres = sites.centre[n][:, [i, j]]
        centres = centres[np.isfinite(centres).all(axis=1)]
        numbers = _correlation(centres, hypotheses.confidence)
        rows.append([*pair, network, one, other, len(centres), *numbers])
        directions = [np.maximum(faster[n, :, x], slower[n, :, y]) for x, y in ((i, j), (j, i))]
        p_values.append(np.minimum(1, 2 * np.minimum(*directions)))
    table = pd.DataFrame(rows, columns=AGREEMENT_COLUMNS[:-3])
    corrected = holm(np.ravel(p_values)).reshape(len(rows), len(samples.sites))
    is_opposite = corrected < hypotheses.significant_p
    names = np.array(samples.sites, dtype=object)
    return table.assign(
        opposite=is_opposite.sum(axis=1),
        opposite_sites=[", ".join(names[row]) for row in is_opposite],
        opposite_p=np.fmin.reduce(corrected, axis=1, initial=np.nan),
    )


def reliability(gains: Array, noise: Array) -> Array:
    """The reliability of each network's gains: the share of their scatter that comes from the sites and not from the
    runs.

    `gains`: networks x sites. `noise`: repetitions x networks x sites, of the same size as the noise in the gains. Let
    q be the correlation of the gains with the gains plus this further noise, s the variance of the sites and e that of
    the noise. Then q squared is (s + e) / (s + 2 e), so the reliability s / (s + e) is 2 - 1 / q squared (after Cook
    and Stefanski 1994, Simulation-extrapolation estimation). q is computed from ranks, since otherwise a single site
    far from the others would look like a scatter of all sites.
    """
    of_ranks = _rank_correlations(gains, gains + noise).mean(axis=0)
    # Pearson's correlation for this Spearman correlation, if the values are normal.
    correlation = 2 * np.sin(np.pi / 6 * of_ranks)
    return np.asarray(np.clip(2 - 1 / np.maximum(correlation, 0.5) ** 2, 0, 1))


def _mean_z(gains: Array, fact: Array, root: Array | float = 1.0) -> float:
    """Fisher's z of the mean over networks of the correlations of `gains` with `fact`, each divided by `root`."""
    return float(np.arctanh(np.clip((_rank_correlations(gains, fact) / root).mean(), -0.9999, 0.9999)))


def _true_z(gains: Array, fact: Array, noise: Array) -> float:
    """`_mean_z`, corrected for the noise of the runs."""
    # If the reliability is this small, there is no verdict anyway.
    return _mean_z(gains, fact, np.sqrt(np.maximum(reliability(gains, noise), LEAST_RELIABILITY / 10)))


def _rank_correlations(one: Array, other: Array) -> Array:
    """Spearman's correlations along the last axis; 0 if either has only one distinct value."""
    a, b = (stats.rankdata(values, axis=-1) - (values.shape[-1] + 1) / 2 for values in (one, other))
    scale = np.sqrt((a**2).sum(axis=-1) * (b**2).sum(axis=-1))
    return np.asarray((a * b).sum(axis=-1) / np.where(scale > 0, scale, np.inf))


def _correlation(values: Array, confidence: float) -> tuple[float, float, float]:
    """Spearman's correlation of two columns, with its interval (Fieller, Hartley and Pearson 1957)."""
    if len(values) <= LEAST_SITES or not np.ptp(values, axis=0).all():
        return float("nan"), float("nan"), float("nan")
    correlation = float(stats.spearmanr(*values.T).statistic)
    reach = stats.norm.ppf((1 + confidence) / 2) * np.sqrt(1.06 / (len(values) - 3))
    z = np.arctanh(np.clip(correlation, -0.9999, 0.9999))
    return correlation, float(np.tanh(z - reach)), float(np.tanh(z + reach))
