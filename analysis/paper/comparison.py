"""Each number of the paper side by side with the campaign's, or with the data that the campaign lacks for it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

from analysis.findings import Findings
from analysis.networks import path_rtt_ms
from analysis.paper.replication import Replication, of_count, of_number, paper_error, standard_error
from analysis.runs import rows_of
from analysis.statistics.contrasts import difference_interval
from analysis.statistics.gain import mean
from analysis.statistics.hypotheses import Pair
from analysis.statistics.outcomes import FASTER, UNTESTED
from analysis.statistics.samples import Array, Samples, counts

PAPER = Path(__file__).parent / "reference" / "wolsing2019.csv"
PAPER_SITES, PAPER_RUNS = 38, 31
# The largest error of a number of the paper from rounding, by its unit.
ROUNDING = {"ratio": 0.005, "ms": 0.05, "s": 0.05}
# The pairs and metrics of the paper's Table 3.
HANDSHAKE_PAIRS = (Pair("tcp+", "quic"), Pair("tcp+bbr", "quic+bbr"))
HANDSHAKE_METRICS = ("fvc", "plt")
HANDSHAKE_COLUMNS = ["reference", "compared", "network", "site", "metric", "rtt_ms", "runs_reference", "runs_compared"]
HANDSHAKE_COLUMNS += ["delta_ms", "delta_low", "delta_high", "round_trips"]
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Estimate:
    """The campaign's counterpart of a number of the paper.

    `value`, `low` and `high` are in the paper's unit. The value rests on `sites` sites, and on `runs` runs if it is of
    one site. `missing` says why there is no value, if there is none.
    """

    value: float = float("nan")
    low: float = float("nan")
    high: float = float("nan")
    sites: int = 0
    runs: int = 0
    missing: str = ""


def read_paper(path: Path = PAPER) -> pd.DataFrame:
    """The paper's numbers; columns kind, network, reference, compared, site, metric, value, unit, note."""
    return pd.read_csv(path, comment="#", keep_default_na=False)


def handshake_table(findings: Findings) -> pd.DataFrame:
    """The paper's Table 3: QUIC's lead on sites of one server, beyond the gain from its shorter handshake.

    QUIC's first request leaves after one round trip, that of TCP with TLS 1.3 after two. On a site with one server the
    handshake gains no more than that round trip, so the table has compared - (reference - one round trip). There is a
    row for each of HANDSHAKE_PAIRS, network, site with one server and metric of HANDSHAKE_METRICS that was measured.
    Columns: reference, compared, network, site, metric, rtt_ms (the network's minimum round-trip time), runs_reference,
    runs_compared, delta_ms with delta_low and delta_high (Welch's interval), round_trips (delta_ms in round trips).
    """

    def statistics(_: Pair, reference: Array, compared: Array) -> dict[str, NDArray[Any]]:
        low, high = difference_interval(reference, compared, findings.hypotheses.confidence)
        return {
            "runs_reference": counts(reference),
            "runs_compared": counts(compared),
            "delta_ms": mean(compared) - mean(reference),
            "delta_low": low,
            "delta_high": high,
        }

    samples, sites = findings.samples, findings["sites"]
    table = samples.compare(samples.measured(HANDSHAKE_PAIRS), statistics, HANDSHAKE_COLUMNS)
    table = table[
        table["site"].isin(sites.loc[sites["servers"] == 1, "site"]) & table["metric"].isin(HANDSHAKE_METRICS)
    ]
    rtt_ms = {name: path_rtt_ms(network) for name, network in findings.campaign.network_settings.items()}
    table = table.assign(rtt_ms=table["network"].map(rtt_ms).astype(float))
    for name in ("delta_ms", "delta_low", "delta_high"):
        table[name] += table["rtt_ms"]
    table["round_trips"] = table["delta_ms"] / table["rtt_ms"]
    return table[HANDSHAKE_COLUMNS].reset_index(drop=True)


def side_by_side(findings: Findings) -> pd.DataFrame:
    """The paper's numbers, each with the campaign's.

    Added columns:
    - ours, ours_low, ours_high: the campaign's number and its interval, in the paper's unit; a number of faster sites
      is scaled to the paper's 38 sites
    - sites: how many the campaign's number rests on
    - same_sign: yes, no, or empty if a sign means nothing
    - agrees: whether the campaign's number lies where an exact repetition's would (`analysis.paper.replication`): yes,
      no, or empty without an interval
    - chance: how rare such a number is among exact repetitions
    - missing: why there is no number
    """
    rows = []
    for row in read_paper().to_dict("records"):
        missing = _missing(row, findings.samples)
        estimate = Estimate(missing=missing) if missing else _ESTIMATORS[row["kind"]](row, findings)
        has_sign = row["unit"] in ("ratio", "ms") and np.isfinite(estimate.value) and row["value"] and estimate.value
        repetition = _repetition(row, estimate, findings.hypotheses.confidence)
        has_same_sign = np.sign(row["value"]) == np.sign(estimate.value)
        rows.append(
            row
            | {
                "ours": estimate.value,
                "ours_low": estimate.low,
                "ours_high": estimate.high,
                "sites": estimate.sites,
                "same_sign": ("yes" if has_same_sign else "no") if has_sign else "",
                "agrees": ("yes" if repetition.agrees else "no") if repetition else "",
                "chance": repetition.chance if repetition else float("nan"),
                "missing": estimate.missing,
            }
        )
    return pd.DataFrame(rows)


def _repetition(row: Row, estimate: Estimate, confidence: float) -> Replication | None:
    """Whether the campaign's number is what a repetition of the paper would give; None without an interval."""
    if not (np.isfinite(estimate.low) and np.isfinite(estimate.high)):
        return None
    if row["kind"] == "sites_faster":
        ours = round(estimate.value * estimate.sites / PAPER_SITES)
        return of_count(int(row["value"]), PAPER_SITES, ours, estimate.sites, confidence)
    size, paper_size = (estimate.runs, PAPER_RUNS) if estimate.sites == 1 else (estimate.sites, PAPER_SITES)
    if size < 2:
        return None
    error = standard_error(estimate.low, estimate.high, size - 1, confidence)
    errors = (paper_error(error, size, paper_size), error)
    return of_number(row["value"], estimate.value, errors, size - 1, ROUNDING[row["unit"]], confidence)


def _missing(row: Row, samples: Samples) -> str:
    """The network, protocols, site or metrics of a number that the campaign does not have at all."""
    absent = [] if row["network"] in samples.networks else [f"network {row['network']}"]
    absent += [
        f"protocol {name}" for name in (row["reference"], row["compared"]) if name and name not in samples.protocols
    ]
    if row["site"] and campaign_site(row["site"], samples.sites) is None:
        absent.append(f"site {row['site']}")
    metrics = row["metric"].split()
    if not set(metrics) & set(samples.metrics):
        absent += [f"metric {name}" for name in metrics]
    return f"not measured: {', '.join(absent)}" if absent else ""


def campaign_site(site: str, sites: tuple[str, ...]) -> str | None:
    """The campaign's name of the paper's `site`: with or without www. or the top-level domain, ignoring case."""
    names = {site, f"www.{site}", site.rpartition(".")[0]}
    return next((name for name in sites if name.lower() in names), None)


def _select(table: pd.DataFrame, row: Row, *keys: str) -> pd.DataFrame:
    """The rows of `table` that agree with `row` in `keys`."""
    return rows_of(table, **{key: row[key] for key in keys or ("network", "reference", "compared", "metric")})


def _mean(column: str, row: Row, findings: Findings) -> Estimate:
    rows = _select(findings["over_sites"], row)
    if rows.empty:
        return Estimate(missing="no site has runs of both")
    first = rows.iloc[0]
    low, high = float(first[f"{column}_low"]), float(first[f"{column}_high"])
    return Estimate(float(first[column]), low, high, sites=int(first["sites"]))


def _sites_faster(row: Row, findings: Findings) -> Estimate:
    rows = _select(findings["gains"], row)
    verdicts = rows.loc[rows["verdict"] != UNTESTED, "verdict"]
    if verdicts.empty:
        return Estimate(missing="no site has two runs of both")
    faster = int((verdicts == FASTER).sum())
    low, high = proportion_confint(faster, len(verdicts), alpha=1 - findings.hypotheses.confidence, method="beta")
    scale = PAPER_SITES
    return Estimate(scale * faster / len(verdicts), scale * float(low), scale * float(high), sites=len(verdicts))


def _rtt_delta(row: Row, findings: Findings) -> Estimate:
    name = campaign_site(row["site"], findings.samples.sites)
    rows = _select(findings["handshake"], {**row, "site": name}, "network", "reference", "compared", "metric", "site")
    if rows.empty:
        return Estimate(missing=f"{name} is not known to have one server, or has no runs of both")
    first = rows.iloc[0]
    runs = int(min(first["runs_reference"], first["runs_compared"]))
    return Estimate(float(first["delta_ms"]), float(first["delta_low"]), float(first["delta_high"]), sites=1, runs=runs)


def _max_gain(row: Row, findings: Findings) -> Estimate:
    rows = _select(findings["gains"], row, "network", "reference")
    rows = rows[rows["metric"].isin(row["metric"].split())].dropna(subset="gain")
    if rows.empty:
        return Estimate(missing="no site has runs of both")
    return Estimate(float(rows["gain"].max()), sites=rows["site"].nunique())


def _example(row: Row, findings: Findings) -> Estimate:
    samples = findings.samples
    site = samples.sites.index(campaign_site(row["site"], samples.sites) or "")
    cell = (samples.networks.index(row["network"]), site, samples.metrics.index(row["metric"]))
    seconds = samples.of(row["compared"])[cell] / 1000
    runs = int(counts(seconds))
    if runs < 2:
        return Estimate(float(mean(seconds)), sites=1, missing="" if runs else "it has no valid run")
    seconds = seconds[np.isfinite(seconds)]
    low, high = stats.t.interval(findings.hypotheses.confidence, runs - 1, seconds.mean(), stats.sem(seconds))
    return Estimate(float(seconds.mean()), float(low), float(high), sites=1, runs=runs)


# The kind of a number of the paper → the function that computes the campaign's, if everything it needs was measured.
_ESTIMATORS: dict[str, Callable[[Row, Findings], Estimate]] = {
    "mean_gain": lambda row, findings: _mean("gain", row, findings),
    "mean_delta": lambda row, findings: _mean("delta_ms", row, findings),
    "sites_faster": _sites_faster,
    "rtt_delta": _rtt_delta,
    "max_gain": _max_gain,
    "example": _example,
}
