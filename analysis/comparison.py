"""Side by side with the paper: each of its numbers beside the campaign's own, or what the campaign lacks for it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from analysis.gain import FASTER, UNTESTED, mean
from analysis.samples import Samples, counts

PAPER = Path(__file__).parent / "reference" / "wolsing2019.csv"
PAPER_SITES = 38


@dataclass(frozen=True)
class Found:
    """What the campaign has beside a number of the paper: estimate and interval in the paper's unit, and what they
    rest on; or, in `missing`, why there is none."""

    value: float = float("nan")
    low: float = float("nan")
    high: float = float("nan")
    sites: int = 0
    missing: str = ""


def read_paper(path: Path = PAPER) -> pd.DataFrame:
    """The paper's numbers; columns kind, network, reference, compared, site, metric, value, unit, note."""
    return pd.read_csv(path, comment="#", keep_default_na=False)


@dataclass(frozen=True)
class Evidence:
    """What a campaign says, as `gains`, `over_sites` and `handshake_table` return it, and the samples themselves."""

    samples: Samples
    gained: pd.DataFrame
    over_sites: pd.DataFrame
    handshake: pd.DataFrame
    confidence: float


def side_by_side(paper: pd.DataFrame, evidence: Evidence) -> pd.DataFrame:
    """`paper` with, for each of its numbers, the campaign's.

    Added columns: ours, ours_low, ours_high (in the paper's unit; sites_faster as sites of 38), sites (how many it
    rests on), same_sign (yes, no, or empty where a sign means nothing), covered (whether the interval covers the
    paper's value: yes, no, or empty without an interval), missing (why there is no number).
    """
    rows = []
    for row in paper.to_dict("records"):
        found = _KINDS[row["kind"]](row, evidence)
        signed = row["unit"] in ("ratio", "ms") and np.isfinite(found.value) and row["value"] and found.value
        bounded = np.isfinite(found.low) and np.isfinite(found.high)
        agree = np.sign(row["value"]) == np.sign(found.value)
        rows.append(
            row
            | {
                "ours": found.value,
                "ours_low": found.low,
                "ours_high": found.high,
                "sites": found.sites,
                "same_sign": ("yes" if agree else "no") if signed else "",
                "covered": ("yes" if found.low <= row["value"] <= found.high else "no") if bounded else "",
                "missing": found.missing,
            }
        )
    return pd.DataFrame(rows)


def _lacking(row: Mapping[str, Any], samples: Samples) -> str:
    """What the campaign has not at all of what a number is about."""
    lacks = [] if row["network"] in samples.networks else [f"network {row['network']}"]
    lacks += [
        f"protocol {name}" for name in (row["reference"], row["compared"]) if name and name not in samples.protocols
    ]
    if row["site"] and own_name(row["site"], samples.sites) is None:
        lacks.append(f"site {row['site']}")
    return f"not measured: {', '.join(lacks)}" if lacks else ""


def own_name(site: str, sites: tuple[str, ...]) -> str | None:
    """What the campaign calls the paper's `site`: with or without www. or the top-level domain, in any case."""
    wanted = {site, f"www.{site}", site.rpartition(".")[0]}
    return next((name for name in sites if name.lower() in wanted), None)


def _of(table: pd.DataFrame, row: Mapping[str, Any], *keys: str) -> pd.DataFrame:
    for key in keys or ("network", "reference", "compared", "metric"):
        table = table[table[key] == row[key]]
    return table


def _mean(column: str, row: Mapping[str, Any], evidence: Evidence) -> Found:
    if lacking := _lacking(row, evidence.samples):
        return Found(missing=lacking)
    own = _of(evidence.over_sites, row)
    if own.empty:
        return Found(missing="no site has runs of both")
    one = own.iloc[0]
    low, high = float(one[f"{column}_low"]), float(one[f"{column}_high"])
    return Found(float(one[column]), low, high, sites=int(one["sites"]))


def _sites_faster(row: Mapping[str, Any], evidence: Evidence) -> Found:
    if lacking := _lacking(row, evidence.samples):
        return Found(missing=lacking)
    own = _of(evidence.gained, row)
    tested = own[own["verdict"] != UNTESTED]
    if tested.empty:
        return Found(missing="no site has two runs of both")
    faster = int((tested["verdict"] == FASTER).sum())
    low, high = proportion_confint(faster, len(tested), alpha=1 - evidence.confidence, method="beta")
    scale = PAPER_SITES
    return Found(scale * faster / len(tested), scale * float(low), scale * float(high), sites=len(tested))


def _rtt_delta(row: Mapping[str, Any], evidence: Evidence) -> Found:
    if lacking := _lacking(row, evidence.samples):
        return Found(missing=lacking)
    name = own_name(row["site"], evidence.samples.sites)
    own = _of(evidence.handshake, {**row, "site": name}, "network", "reference", "compared", "metric", "site")
    if own.empty:
        return Found(missing=f"{name} is not known to have one server, or has no runs of both")
    one = own.iloc[0]
    return Found(float(one["delta_ms"]), float(one["delta_low"]), float(one["delta_high"]), sites=1)


def _max_gain(row: Mapping[str, Any], evidence: Evidence) -> Found:
    if lacking := _lacking(row, evidence.samples):
        return Found(missing=lacking)
    own = _of(evidence.gained, row, "network", "reference")
    own = own[own["metric"].isin(row["metric"].split())].dropna(subset="gain")
    if own.empty:
        return Found(missing="no site has runs of both")
    return Found(float(own["gain"].max()), sites=own["site"].nunique())


def _example(row: Mapping[str, Any], evidence: Evidence) -> Found:
    if lacking := _lacking(row, evidence.samples):
        return Found(missing=lacking)
    samples = evidence.samples
    site = samples.sites.index(own_name(row["site"], samples.sites) or "")
    place = (samples.networks.index(row["network"]), site, samples.metrics.index(row["metric"]))
    seconds = samples.of(row["compared"])[place] / 1000
    runs = int(counts(seconds))
    if runs < 2:
        return Found(float(mean(seconds)), sites=1, missing="" if runs else "it has no valid run")
    seconds = seconds[np.isfinite(seconds)]
    low, high = stats.t.interval(evidence.confidence, runs - 1, seconds.mean(), stats.sem(seconds))
    return Found(float(seconds.mean()), float(low), float(high), sites=1)


_KINDS = {
    "mean_gain": lambda row, evidence: _mean("gain", row, evidence),
    "mean_delta": lambda row, evidence: _mean("delta_ms", row, evidence),
    "sites_faster": _sites_faster,
    "rtt_delta": _rtt_delta,
    "max_gain": _max_gain,
    "example": _example,
}
