"""Diagnostics for a sceptical reader: A/A tests, the spread of every setting, and what else was recorded of loads."""

from collections.abc import Collection
from itertools import combinations

import pandas as pd
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from analysis.attempts import SETTING
from analysis.runs import CampaignTable, metrics_in
from analysis.statistics.gain import gains
from analysis.statistics.hypotheses import Pair
from analysis.statistics.outcomes import WARNING_P
from analysis.statistics.samples import CELL, Samples
from dataset.metrics import METRICS
from dataset.table import CampaignDocument

UNIFORM_LEVELS = (0.01, 0.05)


def aa_pairs(document: CampaignDocument, protocols: Collection[str]) -> list[Pair]:
    """The A/A pairs of `protocols`: pairs whose settings in `campaign.json` differ only in the name."""
    settings = {name: {**values, "name": ""} for name, values in document.settings.protocols.items() if values}
    pairs = [Pair(*names) for names in combinations(settings, 2)]
    return [pair for pair in pairs if pair.is_of(protocols) and settings[pair.reference] == settings[pair.compared]]


def aa_p_values(samples: Samples, pairs: list[Pair]) -> pd.DataFrame:
    """The paper's p values of one protocol compared with itself under another name (the A/A `pairs`): columns network,
    site, metric, anova_p."""
    return gains(samples, pairs).rename(columns={"p": "anova_p"}).dropna(subset="anova_p")[[*CELL, "anova_p"]]


def aa_calibration(p_values: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """How often p values of equal samples fall below a level, by metric, from the table of `aa_p_values`.

    Columns: metric, tests (their number; nearly independent, since of different settings), level (the share
    expected below it), found (the share below it) with low and high (exact), uniform_p (Kolmogorov and Smirnov's test
    against the uniform distribution), warning.
    """
    rows = []
    for metric, p in p_values.groupby("metric", sort=False)["anova_p"]:
        uniform_p = stats.kstest(p, "uniform").pvalue
        for level in UNIFORM_LEVELS:
            below = int((p < level).sum())
            interval = proportion_confint(below, len(p), alpha=1 - confidence, method="beta")
            warning = "finds too much" if stats.binomtest(below, len(p), level, "greater").pvalue < WARNING_P else ""
            rows.append([metric, len(p), level, below / len(p), *interval, uniform_p, warning])
    columns = ["metric", "tests", "level", "found", "low", "high", "uniform_p", "warning"]
    return pd.DataFrame(rows, columns=columns)


def spread(runs: pd.DataFrame) -> pd.DataFrame:
    """The valid runs of each setting: columns network, site, protocol, metric, runs, mean, median, deviation, least,
    most, skewness."""
    long = runs[runs["valid"]].melt(SETTING, list(metrics_in(runs)), "metric", "ms").dropna(subset="ms")
    groups = long.groupby([*SETTING, "metric"], sort=False)["ms"]
    table = groups.agg(runs="size", mean="mean", median="median", deviation="std", least="min", most="max")
    return table.assign(skewness=groups.skew()).reset_index()


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
