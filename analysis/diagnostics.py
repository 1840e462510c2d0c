"""Diagnostics for a sceptical reader: runs' distances from their setting's median, A/A tests, spread."""

from collections.abc import Collection
from itertools import combinations

import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from analysis.runs import CampaignTable, metrics_in
from analysis.samples import starts_of
from analysis.statistics.hypotheses import Pair
from analysis.statistics.outcomes import WARNING_P
from analysis.statistics.samples import CELL, Array, Samples, t_test_p
from dataset.metrics import METRICS
from dataset.table import CampaignDocument

UNIFORM_LEVELS = (0.01, 0.05)


def residuals(runs: pd.DataFrame) -> pd.DataFrame:
    """The valid runs in the order in which they were measured, each with its distance from the median of its setting.

    `runs` are a campaign's attempts; attempts without a known start (started_at) are left out. Added columns: order (0,
    1, …), hours (since the first run), position (1, … within the block), and off_<metric>: ln of the time over the
    median of its setting.
    """
    valid = runs[runs["valid"]].copy()
    metrics = list(metrics_in(runs))
    started = starts_of(valid)
    valid = valid.assign(started=started).dropna(subset="started").sort_values("started", kind="stable")
    valid["order"] = np.arange(len(valid))
    valid["hours"] = (valid["started"] - valid["started"].min()).dt.total_seconds() / 3600
    valid["position"] = valid.groupby(["network", "site", "run"], sort=False).cumcount() + 1
    medians = valid.groupby(["network", "site", "protocol"], sort=False)[metrics].transform("median")
    with np.errstate(divide="ignore", invalid="ignore"):
        distances = np.log(valid[metrics] / medians)
    return valid.join(distances.replace([np.inf, -np.inf], np.nan).add_prefix("off_")).reset_index(drop=True)


def aa_pairs(document: CampaignDocument, protocols: Collection[str]) -> list[Pair]:
    """The A/A pairs of `protocols`: pairs whose settings in `campaign.json` differ only in the name."""
    settings = {name: {**values, "name": ""} for name, values in document.settings.protocols.items() if values}
    pairs = [Pair(*names) for names in combinations(settings, 2)]
    return [pair for pair in pairs if pair.is_of(protocols) and settings[pair.reference] == settings[pair.compared]]


def aa_p_values(samples: Samples, pairs: list[Pair]) -> pd.DataFrame:
    """p values of comparisons of one protocol with itself under another name (the A/A `pairs`).

    Columns: kind (A/A), network, site, metric, anova_p, welch_p. Leaves out cells without a p value.
    """

    def p_values(_: Pair, reference: Array, compared: Array) -> dict[str, Array]:
        tests = {"anova_p": True, "welch_p": False}
        return {name: t_test_p(reference, compared, equal_var=equal) for name, equal in tests.items()}

    columns = ["kind", *CELL, "anova_p", "welch_p"]
    return samples.compare(pairs, p_values, columns).assign(kind="A/A").dropna(subset="anova_p")[columns]


def aa_calibration(p_values: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """How often p values of equal samples fall below a level, by kind and metric, from the table of `aa_p_values`.

    Columns: kind, metric, tests (their number), level (the share expected below it), found (the share below it), low
    and high (the exact interval of that share), uniform_p (Kolmogorov and Smirnov's test against the uniform
    distribution), warning. The tests are of different settings, so they are nearly independent.
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


def readings(campaign: CampaignTable) -> pd.DataFrame:
    """One row for each column of an instrument (`CampaignDocument.columns`), network and protocol: the column and its
    unit, how many runs that count have a value, and the mean. There is no row if no run has a value."""
    described = {name: field for name, field in campaign.document.columns.items() if name in campaign.runs}
    long = campaign.valid.melt(["network", "protocol"], list(described), "column", "reading")
    long["reading"] = pd.to_numeric(long["reading"], errors="coerce")
    groups = long.dropna(subset=["reading"]).groupby(["column", "network", "protocol"], sort=False)["reading"]
    table = groups.agg(runs="size", mean="mean").reset_index()
    return table.assign(unit=[described[name].get("unit", "") for name in table["column"]])


def link_use(runs: pd.DataFrame) -> pd.DataFrame:
    """The metrics that are not times, by network and protocol: how many sites and counting runs have any, and for each
    metric its mean over sites of the means over runs. Empty if no run has any."""
    names = [metric.name for metric in METRICS if not metric.is_time and not metric.is_of_web and metric.name in runs]
    valid = runs[runs["valid"]].dropna(subset=names, how="all")
    of_sites = valid.groupby(["network", "protocol", "site"], sort=False)
    table = of_sites[names].mean().assign(runs=of_sites.size()).groupby(["network", "protocol"], sort=False)
    means = table[names].mean().assign(sites=table.size(), runs=table["runs"].sum()).reset_index()
    return means.reindex(columns=["network", "protocol", "sites", "runs", *names])
