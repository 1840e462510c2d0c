"""Whether a campaign can be trusted: drift, position in the block, canary, exclusions, and A/A tests."""

from collections.abc import Collection
from itertools import combinations

import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from analysis.contrasts import SEED, welch_p
from analysis.gain import anova_p
from analysis.hypotheses import Pair
from analysis.outcomes import UNEVEN_SHARE, WARNING_P
from analysis.runs import CANARY_PREFIX, gates, metrics_in
from analysis.samples import Array, Samples
from measure.campaign.results import SUPERSEDED
from measure.table import CampaignDocument

UNIFORM_LEVELS = (0.01, 0.05)


def residuals(runs: pd.DataFrame) -> pd.DataFrame:
    """The valid runs in the order measured, each with its distance from the median of its setting.

    `runs` are a campaign's attempts, with started_at. Added columns: order (0, 1, …), hours (since the first),
    position (1, … within its block), and off_<metric>: ln of the time over the median of its setting.
    """
    valid = runs[runs["valid"]].copy()
    metrics = list(metrics_in(runs))
    started = pd.to_datetime(valid["started_at"], utc=True, errors="coerce", format="ISO8601")
    valid = valid.assign(started=started).dropna(subset="started").sort_values("started", kind="stable")
    valid["order"] = np.arange(len(valid))
    valid["hours"] = (valid["started"] - valid["started"].min()).dt.total_seconds() / 3600
    valid["position"] = valid.groupby(["network", "site", "run"], sort=False).cumcount() + 1
    medians = valid.groupby(["network", "site", "protocol"], sort=False)[metrics].transform("median")
    with np.errstate(divide="ignore", invalid="ignore"):
        distances = np.log(valid[metrics] / medians)
    return valid.join(distances.replace([np.inf, -np.inf], np.nan).add_prefix("off_")).reset_index(drop=True)


def drift(residuals: pd.DataFrame, machine: str | None = None) -> pd.DataFrame:
    """Whether times change in the course of a campaign, from the table of `residuals`.

    `machine`: the column with the machine of a run, if there were several. A row for each metric; columns:
    metric, runs, drift (share, over the whole campaign, by least squares), drift_p (Spearman's, against the order),
    position_p and machine_p (Kruskal and Wallis's, over places in the block and over machines), warning.
    """
    rows = []
    for metric in metrics_in(residuals):
        runs = residuals[residuals[f"off_{metric}"].notna()]
        order, value = runs["order"].to_numpy(dtype=float), runs[f"off_{metric}"].to_numpy()
        change, drift_p, position_p, machine_p = (float("nan"),) * 4
        if len(runs) > 2 and np.ptp(value) > 0:
            change = float(np.expm1(np.polyfit(order / order.max(), value, 1)[0]))
            drift_p = float(stats.spearmanr(order, value).pvalue)
            position_p = _kruskal_p(runs, "position", metric)
            machine_p = _kruskal_p(runs, machine, metric) if machine else float("nan")
        tests = {
            "drifts": drift_p,
            "depends on the place in the block": position_p,
            "depends on the machine": machine_p,
        }
        warning = "; ".join(text for text, p in tests.items() if p < WARNING_P)
        rows.append((metric, len(runs), change, drift_p, position_p, machine_p, warning))
    return pd.DataFrame(rows, columns=["metric", "runs", "drift", "drift_p", "position_p", "machine_p", "warning"])


def _kruskal_p(residuals: pd.DataFrame, factor: str, metric: str) -> float:
    """Kruskal and Wallis's p value: runs have the same distribution in all groups of the column `factor`."""
    groups = [group.to_numpy() for _, group in residuals.groupby(factor)[f"off_{metric}"]]
    return float(stats.kruskal(*groups).pvalue) if len(groups) > 1 else float("nan")


def canaries(residuals: pd.DataFrame) -> pd.DataFrame:
    """The correlation of the metrics with each canary column, from the table of `residuals`.

    A row for each canary and metric; columns: canary, metric, runs, correlation (Spearman's rho), p, warning.
    Empty where the campaign has no canary.
    """
    rows = []
    for canary in (name for name in residuals if name.startswith(CANARY_PREFIX)):
        for metric in metrics_in(residuals):
            runs = residuals[[canary, f"off_{metric}"]].dropna()
            rho, p = float("nan"), float("nan")
            if len(runs) > 2 and runs.nunique().min() > 1:
                rho, p = (float(value) for value in stats.spearmanr(runs[canary], runs[f"off_{metric}"]))
            rows.append((canary, metric, len(runs), rho, p, "goes with the canary" if p < WARNING_P else ""))
    return pd.DataFrame(rows, columns=["canary", "metric", "runs", "correlation", "p", "warning"])


def exclusion_rates(runs: pd.DataFrame) -> pd.DataFrame:
    """The share of attempts that each protocol lost behind each network, and whether the shares differ.

    Columns: network, protocol, attempts, excluded, share, p (chi-squared, for the network as a whole; by 10 000
    permutations where few are expected), warning.
    """
    attempts = runs[gates(runs["reason"]) != SUPERSEDED]
    groups = attempts.groupby(["network", "protocol"], sort=False)["valid"]
    table = groups.agg(attempts="size", excluded=lambda valid: (~valid).sum()).reset_index()
    table["share"] = table["excluded"] / table["attempts"]
    p_values = {network: _equal_shares_p(group) for network, group in table.groupby("network", sort=False)}
    table["p"] = table["network"].map(p_values)
    least = table.groupby("network")["share"].transform("min")
    is_uneven = (table["p"] < WARNING_P) | (table["share"] - least > UNEVEN_SHARE)
    table["warning"] = np.where(is_uneven & (table["share"] > least), "more than the others", "")
    return table


def _equal_shares_p(group: pd.DataFrame) -> float:
    """p value: all protocols of a network lose the same share of attempts."""
    counts = np.stack([group["excluded"], group["attempts"] - group["excluded"]]).astype(float)
    if len(group) < 2 or (counts.sum(axis=1) == 0).any():
        return float("nan")
    expected = stats.contingency.expected_freq(counts)
    if expected.min() >= 5:
        return float(stats.chi2_contingency(counts).pvalue)
    draw = np.random.default_rng(SEED)
    permutations = draw.multivariate_hypergeometric(group["attempts"].to_numpy(), int(counts[0].sum()), size=10_000)
    distances = ((permutations - expected[0]) ** 2 / expected[0]).sum(axis=1)
    return float((1 + (distances >= ((counts[0] - expected[0]) ** 2 / expected[0]).sum() - 1e-9).sum()) / 10_001)


def aa_pairs(document: CampaignDocument, protocols: Collection[str]) -> list[Pair]:
    """The A/A pairs of `protocols`: their settings in `campaign.json` differ in nothing but the name."""
    settings = {name: {**values, "name": ""} for name, values in document.protocols.items() if values}
    pairs = [Pair(*names) for names in combinations(settings, 2)]
    return [pair for pair in pairs if pair.is_of(protocols) and settings[pair.reference] == settings[pair.compared]]


def aa_p_values(samples: Samples, pairs: list[Pair]) -> pd.DataFrame:
    """p values of comparisons of samples from one distribution.

    These are A/A `pairs`, and each setting with itself, its runs split in two at random (kind split); that
    tests whether the runs of one setting scatter as the tests assume. Columns: kind, network, site, metric, anova_p,
    welch_p; cells without a p value are left out.
    """
    tables = [_p_values("A/A", samples, *samples.of_pair(pair)) for pair in pairs]
    draw = np.random.default_rng(SEED)
    for protocol in samples.protocols:
        values = samples.of(protocol)
        # The metrics of one run go to the same half.
        is_odd = draw.permuted(np.broadcast_to(np.arange(values.shape[-1]) % 2, values[:, :, 0].shape), axis=-1) == 1
        is_odd = np.broadcast_to(is_odd[:, :, None], values.shape)
        tables.append(_p_values("split", samples, np.where(is_odd, values, np.nan), np.where(is_odd, np.nan, values)))
    columns = ["kind", "network", "site", "metric", "anova_p", "welch_p"]
    return pd.concat(tables, ignore_index=True).dropna(subset="anova_p")[columns]


def _p_values(kind: str, samples: Samples, reference: Array, compared: Array) -> pd.DataFrame:
    p_values = {"anova_p": anova_p(reference, compared), "welch_p": welch_p(reference, compared)}
    return samples.frame({"kind": kind, **p_values})


def aa_calibration(p_values: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """How often p values of equal samples fall below a level, by kind and metric, from the table of `aa_p_values`.

    Columns: kind, metric, tests, level, expected, found (shares), low, high (exact interval of the share), uniform_p
    (Kolmogorov and Smirnov's against uniform), warning. The tests are of different settings, so nearly independent.
    """
    rows = []
    for (kind, metric), group in p_values.groupby(["kind", "metric"], sort=False):
        p = group["anova_p"].to_numpy()
        uniform = float(stats.kstest(p, "uniform").pvalue)
        for level in UNIFORM_LEVELS:
            below = int((p < level).sum())
            low, high = proportion_confint(below, len(p), alpha=1 - confidence, method="beta")
            warning = "finds too much" if stats.binomtest(below, len(p), level, "greater").pvalue < WARNING_P else ""
            rows.append((kind, metric, len(p), level, below / len(p), float(low), float(high), uniform, warning))
    columns = ["kind", "metric", "tests", "level", "found", "low", "high", "uniform_p", "warning"]
    return pd.DataFrame(rows, columns=columns)


def spread(runs: pd.DataFrame) -> pd.DataFrame:
    """The distribution of the valid runs of each setting.

    Columns: network, site, protocol, metric, runs, mean, median, deviation, variation (deviation / mean), skewness,
    least, most.
    """
    valid = runs[runs["valid"]]
    long = valid.melt(["network", "site", "protocol"], list(metrics_in(runs)), "metric", "ms").dropna(subset="ms")
    groups = long.groupby(["network", "site", "protocol", "metric"], sort=False)["ms"]
    table = groups.agg(runs="size", mean="mean", median="median", deviation="std", least="min", most="max")
    table["skewness"] = groups.skew()
    table["variation"] = table["deviation"] / table["mean"].where(table["mean"] != 0)
    return table.reset_index()
