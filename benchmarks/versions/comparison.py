"""Compares the measurements of two versions, in pairs: ratios, whether they are equivalent, and run-to-run deviations.

Each version makes one campaign of a pair of campaigns. A pair of runs is the same run (site, network, protocol, number)
in both of these campaigns. A setting is a site with a network and a protocol. Nothing here depends on how campaigns are
made.
"""

import math
from dataclasses import astuple, dataclass

import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.stats.weightstats import DescrStatsW

from analysis.runs import metrics_in
from analysis.statistics.ratios import mean_over_sites
from dataset.reasons import gate_name
from measure.calibration.equivalence import BOUND, ERROR

METRICS = ("fvc", "si", "vc85", "lvc", "plt")
SETTING = ["network", "site", "protocol"]
# If an interval of this level lies within the bound, two one-sided tests show equivalence (Schuirmann 1987).
CONFIDENCE = 1 - 2 * ERROR
EQUIVALENT, DIFFERENT, OPEN = "equivalent", "different", "not decided"
# The number of blocks is planned so that equal versions are found equivalent with this probability.
POWER = 0.9
MOST_BLOCKS = 100_000
ALL = "all"


@dataclass(frozen=True)
class Interval:
    """An estimate and the ends of its interval; NaN if it has none."""

    estimate: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """The verdict on a ratio: equal to within BOUND, different by more, or undecided."""
        if self.low > 1 / (1 + BOUND) and self.high < 1 + BOUND:
            return EQUIVALENT
        return DIFFERENT if self.low > 1 + BOUND or self.high < 1 / (1 + BOUND) else OPEN


def values(runs: pd.DataFrame) -> pd.DataFrame:
    """The logarithms of the positive metrics of the valid `runs`.

    The table has a row for each, with the columns metric and log, and those that identify the run.
    """
    keys = [name for name in (*SETTING, "run", "pair", "version") if name in runs]
    names = [name for name in METRICS if name in metrics_in(runs)]
    long = runs[runs["valid"]].melt(keys, names, "metric", "ms")
    long = long[long["ms"] > 0]
    return long.assign(log=np.log(long["ms"])).drop(columns="ms")


def pairs_of(runs: pd.DataFrame, before: str, after: str) -> pd.DataFrame:
    """The pairs in `runs`, a table with the columns `pair` and `version`.

    There is a row for each run that both versions measured, with the logarithms of the metric `before` and `after`, and
    their difference, `ratio`.
    """
    table = values(runs).pivot(index=["metric", *SETTING, "pair", "run"], columns="version", values="log")
    table = table.reindex(columns=[before, after]).dropna().set_axis(["before", "after"], axis="columns")
    return table.assign(ratio=table["after"] - table["before"]).reset_index()


def mean_ratio(pairs: pd.DataFrame) -> Interval:
    """The mean ratio of `pairs` of one metric, with Student's interval; each setting has the same weight."""
    if len(pairs) < 2:
        return Interval(math.exp(pairs["ratio"].mean()), math.nan, math.nan)
    weights = 1 / pairs.groupby(SETTING)["ratio"].transform("size")
    described = DescrStatsW(pairs["ratio"], weights=weights * len(pairs) / weights.sum())
    low, high = described.tconfint_mean(alpha=1 - CONFIDENCE)
    return Interval(*(math.exp(value) for value in (described.mean, low, high)))


def robust_ratio(pairs: pd.DataFrame) -> Interval:
    """The mean over settings of the location of their ratios (Huber's estimate), which is robust against a few
    outliers."""
    table = pairs.pivot(index=SETTING, columns=["pair", "run"], values="ratio").to_numpy()
    ratio = mean_over_sites(table)
    low, high = ratio.interval(CONFIDENCE)
    return Interval(*(math.exp(value) for value in (ratio.centre, low, high)))


def variances(runs: pd.DataFrame) -> pd.Series:
    """The variance from run to run of the logarithms in `values`, by metric and setting; NaN for a single run."""
    return runs.groupby(["metric", *SETTING], sort=False)["log"].var()


def deviation_ratio(pairs: pd.DataFrame) -> Interval:
    """The ratio, after to before, of the run-to-run standard deviation within settings, for `pairs` of one metric.

    Its interval is computed from the logarithms of the variances. The pooled kurtosis of all runs replaces the normal
    distribution's 3, since loads have long tails (Bonett 2006, Computational Statistics & Data Analysis 50).
    """
    logs = pairs[["before", "after"]]
    of_setting = pairs.groupby(SETTING)[["before", "after"]]
    residuals = (logs - of_setting.transform("mean")).to_numpy()
    count, freedom = len(pairs), len(pairs) - of_setting.ngroups
    before, after = of_setting.var().mean()
    squares = (residuals**2).sum()
    if freedom < 2 or not before > 0 or not after > 0:
        return Interval(math.nan, math.nan, math.nan)
    kurtosis = residuals.size * (residuals**4).sum() / squares**2
    error = math.sqrt(2 * max(kurtosis - (count - 3) / count, 0.0) / freedom)
    reach = stats.norm.ppf((1 + CONFIDENCE) / 2) * error
    log = math.log(after / before)
    return Interval(*(math.exp(value / 2) for value in (log, log - reach, log + reach)))


def blocks_needed(variance: float, settings: int) -> float:
    """The number of blocks with which equal versions are found equivalent with the probability POWER.

    `variance` is the mean variance of the log ratios of each of `settings` settings. The result is infinite if
    MOST_BLOCKS do not suffice.
    """
    if not math.isfinite(variance):
        return math.nan
    blocks = np.arange(2, MOST_BLOCKS)
    error, freedom = np.sqrt(variance / (blocks * settings)), blocks * settings - 1
    with np.errstate(divide="ignore"):
        room = math.log1p(BOUND) / error - stats.t.ppf((1 + CONFIDENCE) / 2, freedom)
    enough = 2 * stats.t.cdf(room, freedom) - 1 >= POWER
    return float(blocks[enough.argmax()]) if enough.any() else math.inf


def results(pairs: pd.DataFrame) -> pd.DataFrame:
    """The comparison of each metric on each network and on all together: a row for each, with texts and numbers."""
    rows = []
    networks = list(pairs["network"].unique())
    for network in (*networks, *([ALL] if len(networks) > 1 else [])):
        there = pairs if network == ALL else pairs[pairs["network"] == network]
        for metric in METRICS:
            chosen = there[there["metric"] == metric]
            if chosen.empty:
                continue
            ratio, settings = mean_ratio(chosen), chosen.groupby(SETTING)
            needed = blocks_needed(settings["ratio"].var().mean(), settings.ngroups)
            rows.append(
                {
                    "network": network,
                    "metric": metric.upper(),
                    "pairs": len(chosen),
                    "ratio, %": percent(ratio),
                    "verdict": ratio.verdict,
                    "robust ratio, %": percent(robust_ratio(chosen)),
                    "deviations' ratio": times(deviation_ratio(chosen)),
                    "blocks needed": needed,
                }
            )
    return pd.DataFrame(rows)


def by_setting(pairs: pd.DataFrame) -> pd.DataFrame:
    """The mean ratio and the deviations of both versions (percent) for each metric, a row for each setting.

    Chaotic settings become visible here.
    """
    columns = {}
    for metric in METRICS:
        groups = pairs[pairs["metric"] == metric].groupby(SETTING, sort=False)
        deviations = 100 * groups[["before", "after"]].std()
        means = 100 * np.expm1(groups["ratio"].mean())
        texts = [f"{m:+.1f} ({b:.1f}, {a:.1f})" for m, b, a in zip(means, *deviations.to_numpy().T, strict=True)]
        columns[metric.upper()] = pd.Series(texts, means.index, dtype=str)
    return pd.DataFrame(columns).reset_index()


def choice_of_sites(runs: pd.DataFrame) -> pd.DataFrame:
    """How much the valid `runs` of each site vary, the steadiest site first.

    The columns are the deviation (percent) by network and metric, each over the site's protocols; the largest of them;
    and how many blocks a comparison needs to decide every metric on every network: with this site alone, and with this
    site and all above it. The table does not compare versions, so it may be used to choose sites.
    """
    of_setting = variances(values(runs)).unstack(["metric", "network"])  # (site, protocol) x (metric, network)
    of_site = of_setting.groupby("site").mean()
    order = of_site.max(axis="columns").sort_values().index
    protocols = of_setting.index.get_level_values("protocol").nunique()
    rows = []
    for count, site in enumerate(order, start=1):
        deviations = {
            f"{network} {metric.upper()}": 100 * math.sqrt(of_site.loc[site, (metric, network)])
            for metric, network in sorted(of_site, key=lambda key: (key[1], METRICS.index(key[0])))
        }
        alone, together = of_site.loc[site], of_site.loc[order[:count]].mean()
        rows.append(
            {
                "site": site,
                **deviations,
                "largest": max(deviations.values()),
                "blocks alone": blocks_needed(2 * alone.max(), protocols),
                "blocks with those above": blocks_needed(2 * together.max(), protocols * count),
            }
        )
    return pd.DataFrame(rows)


def percent(interval: Interval) -> str:
    """A ratio as a difference in percent, with its interval if it has one."""
    return _text(*(f"{100 * (value - 1):+.1f}" for value in astuple(interval)))


def times(interval: Interval) -> str:
    """A ratio as a factor, with its interval if it has one."""
    return _text(*(f"{value:.2f}" for value in astuple(interval)))


def _text(estimate: str, low: str, high: str) -> str:
    return "unknown" if "nan" in estimate else estimate if "nan" in low else f"{estimate} ({low} to {high})"


def exclusions(runs: pd.DataFrame) -> pd.DataFrame:
    """How many attempts each version made, how many of them do not count and because of which gates, and how many runs
    have no valid attempt: a row for each version."""
    rows = {}
    for version, attempts in runs.groupby("version", sort=False):
        gates = attempts.loc[~attempts["valid"], "reason"].map(gate_name).value_counts()
        counts = attempts.groupby(["pair", *SETTING, "run"])["valid"].any()
        rows[version] = {
            "attempts": len(attempts),
            "do not count": int(gates.sum()),
            "runs without one that counts": int((~counts).sum()),
            "gates": ", ".join(f"{gate} {count}" for gate, count in gates.items()) or "none",
        }
    return pd.DataFrame.from_dict(rows, orient="index")
