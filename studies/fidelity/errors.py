"""How far replays are from live loads: the error of each site and metric, and of all sites.

An error is the ratio of a replay's time to a live load's, less 1: +5 % if replays take 5 % longer. Times are compared
as logarithms, so that twice as long is as far off as half as long.
"""

import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from analysis.runs import CampaignTable
from analysis.statistics.intervals import over_runs
from base.files import write_json
from record.live import LiveLoads

FILE = "fidelity.json"
# The columns with the numbers of live loads and of replays.
COUNTS = {"live": "live_loads", "replay": "runs"}
SITE_COLUMNS = ["site", "network", "protocol", "metric", "live_loads", "runs", "live_ms", "replay_ms"]
SITE_COLUMNS += ["error", "error_low", "error_high", "live_scatter", "replay_scatter"]
OVERALL_COLUMNS = ["condition", "metric", "sites", "median_error", "median_low", "median_high"]
OVERALL_COLUMNS += ["chance_error", "mean_error", "mean_low", "mean_high", "with_zero", "with_interval"]


def errors(campaign: CampaignTable, live: Mapping[str, LiveLoads], confidence: float) -> pd.DataFrame:
    """A row with SITE_COLUMNS for each site, network, protocol and metric with a value from a live load and from a run
    that counts.

    `live_ms` and `replay_ms` are geometric means. `error` has the interval of Welch's t test of the logarithms, NaN
    with one load or run. The scatters are standard deviations of the logarithms, as shares (0.05: 5 %).
    """
    rows = []
    for (site, network, protocol), runs in campaign.valid.groupby(["site", "network", "protocol"], sort=False):
        for metric in campaign.metrics:
            one = logarithms(load.metrics.get(metric, math.nan) for load in live[site].loads)
            other = logarithms(runs[metric])
            if len(one) and len(other):
                setting = {"site": site, "network": network, "protocol": protocol, "metric": metric}
                rows.append(setting | error(one, other, confidence))
    return pd.DataFrame(rows, columns=SITE_COLUMNS)


def logarithms(times_ms: Iterable[float]) -> NDArray[np.float64]:
    """The logarithms of the finite positive values in `times_ms`."""
    times = np.fromiter(times_ms, dtype=float)
    return np.asarray(np.log(times[np.isfinite(times) & (times > 0)]))


def error(live: NDArray[np.float64], replay: NDArray[np.float64], confidence: float) -> dict[str, float]:
    """The columns of `errors` from `live_loads` on, computed from logarithms of times."""
    low = high = math.nan
    # If all loads are equal, the scatter is unknown.
    if min(len(live), len(replay)) > 1 and max(np.ptp(live), np.ptp(replay)) > 0:
        interval = stats.ttest_ind(replay, live, equal_var=False).confidence_interval(confidence)
        low, high = float(interval.low), float(interval.high)
    return {
        "live_loads": len(live),
        "runs": len(replay),
        "live_ms": math.exp(live.mean()),
        "replay_ms": math.exp(replay.mean()),
        "error": math.expm1(replay.mean() - live.mean()),
        "error_low": math.expm1(low),
        "error_high": math.expm1(high),
        "live_scatter": _scatter(live),
        "replay_scatter": _scatter(replay),
    }


def overall(by_site: pd.DataFrame, confidence: float) -> pd.DataFrame:
    """A row with OVERALL_COLUMNS for each metric, over all sites of `errors`. If a site was replayed in several ways, a
    row for each way (`condition`).

    `median_error`: the median of the errors' sizes, without their signs, with the interval of the sign test, which
    needs six sites for 95 %. `chance_error`: roughly the median error that the scatter of live loads and of replays
    would cause if replays did not differ from live loads. `mean_error`: the error of the mean logarithm, with Student's
    interval, which shows whether replays take longer or shorter on average. `with_interval`: how many sites
    have an interval; `with_zero`: how many of these intervals contain 0.
    """
    several = by_site.groupby(["site", "metric"]).size().max() > 1 if len(by_site) else False
    conditions = [
        f"{protocol} on {network}" if several else ""
        for protocol, network in zip(by_site["protocol"], by_site["network"], strict=True)
    ]
    rows = [
        {"condition": condition, "metric": metric, **_over_sites(some, confidence)}
        for (condition, metric), some in by_site.groupby([pd.Series(conditions, by_site.index), "metric"], sort=False)
    ]
    return pd.DataFrame(rows, columns=OVERALL_COLUMNS)


def _over_sites(some: pd.DataFrame, confidence: float) -> dict[str, float]:
    ratios = np.log1p(some["error"].to_numpy(dtype=float))
    # A replay that takes half as long is as far off as one that takes twice as long.
    sizes = np.expm1(np.abs(ratios))
    median = stats.quantile_test(sizes, p=0.5).confidence_interval(confidence)
    mean = over_runs(ratios, confidence)
    with_interval = some.dropna(subset=["error_low", "error_high"])
    # Half of the sizes of a normal variable exceed `norm.ppf(3 / 4)` standard deviations.
    live, replay = (np.log1p(some[f"{kind}_scatter"]) ** 2 / some[count] for kind, count in COUNTS.items())
    by_chance = np.expm1(stats.norm.ppf(3 / 4) * np.sqrt(live + replay))
    return {
        "sites": len(some),
        "median_error": float(np.median(sizes)),
        "median_low": float(median.low),
        "median_high": float(median.high),
        "chance_error": float(np.nanmedian(by_chance)) if by_chance.notna().any() else math.nan,
        "mean_error": math.expm1(mean.mean),
        "mean_low": math.expm1(mean.low),
        "mean_high": math.expm1(mean.high),
        "with_zero": int(((with_interval["error_low"] <= 0) & (with_interval["error_high"] >= 0)).sum()),
        "with_interval": len(with_interval),
    }


def write_errors(folder: Path, by_site: pd.DataFrame, all_sites: pd.DataFrame, confidence: float) -> Path:
    """Write both tables as JSON into `folder`; returns the file. Unknown values are null."""
    file = folder / FILE
    tables = {"confidence": confidence, "sites": _records(by_site), "overall": _records(all_sites)}
    write_json(file, tables)
    return file


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = json.loads(table.to_json(orient="records", double_precision=12))
    return records


def _scatter(values: NDArray[np.float64]) -> float:
    return math.expm1(values.std(ddof=1)) if len(values) > 1 else math.nan
