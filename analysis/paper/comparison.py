"""Each number of the paper side by side with the campaign's, or with the data that the campaign lacks for it."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from statsmodels.stats.proportion import proportion_confint

from analysis.findings import Findings, Table
from analysis.networks import path_rtt_ms
from analysis.paper.replication import count_chance, number_chance, paper_error, standard_error
from analysis.runs import records, rows_of
from analysis.statistics.contrasts import difference_interval
from analysis.statistics.gain import mean
from analysis.statistics.hypotheses import Pair
from analysis.statistics.intervals import over_runs
from analysis.statistics.outcomes import FASTER, UNTESTED
from analysis.statistics.samples import OVER_SITES, Array, Samples, counts

PAPER = Path(__file__).parent / "reference" / "wolsing2019.csv"
PAPER_SITES, PAPER_RUNS = 38, 31
# The largest error of a number of the paper from rounding, by its unit.
ROUNDING = {"ratio": 0.005, "ms": 0.05, "s": 0.05}
# The columns of `side_by_side` beside the paper's.
ADDED = ["ours", "ours_low", "ours_high", "sites", "same_sign", "agrees", "chance", "missing"]
DELTA = ("delta_ms", "delta_low", "delta_high")
# The pairs and metrics of the paper's Table 3.
HANDSHAKE_PAIRS = (Pair("tcp+", "quic"), Pair("tcp+bbr", "quic+bbr"))
HANDSHAKE_METRICS = ("fvc", "plt")
HANDSHAKE_COLUMNS = ["reference", "compared", "network", "site", "metric", "rtt_ms", "runs_reference", "runs_compared"]
HANDSHAKE_COLUMNS += [*DELTA, "round_trips"]
# The kind of a number of the paper → the table that has the campaign's, and the columns of this and of its interval.
TABLED: dict[str, tuple[Table, Sequence[str]]] = {
    "mean_gain": ("over_sites", ("gain", "gain_low", "gain_high")),
    "mean_delta": ("over_sites", ("delta_ms", "delta_ms_low", "delta_ms_high")),
    "rtt_delta": ("handshake", DELTA),
}
Row = Mapping[str, Any]


class Estimate(NamedTuple):
    """The campaign's counterpart of a number of the paper, in its unit, with its interval.

    It rests on `sites` sites, and on `runs` runs if it is of one site. `missing`: why there is no value, if so.
    """

    ours: float = float("nan")
    ours_low: float = float("nan")
    ours_high: float = float("nan")
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
        ends = difference_interval(reference, compared, findings.hypotheses.confidence)
        sizes = {"runs_reference": counts(reference), "runs_compared": counts(compared)}
        return sizes | dict(zip(DELTA, (mean(compared) - mean(reference), *ends), strict=True))

    samples, sites = findings.samples, findings["sites"]
    table = samples.compare(samples.measured(HANDSHAKE_PAIRS), statistics, HANDSHAKE_COLUMNS)
    has_one_server = table["site"].isin(sites.loc[sites["servers"] == 1, "site"])
    table = table[has_one_server & table["metric"].isin(HANDSHAKE_METRICS)].reset_index(drop=True)
    rtt_ms = {name: path_rtt_ms(network) for name, network in findings.campaign.network_settings.items()}
    table["rtt_ms"] = table["network"].map(rtt_ms).astype(float)
    for name in DELTA:
        table[name] += table["rtt_ms"]
    return table.assign(round_trips=table["delta_ms"] / table["rtt_ms"])[HANDSHAKE_COLUMNS]


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
    confidence, paper, rows = findings.hypotheses.confidence, read_paper(), []
    for row in records(paper):
        missing = _missing(row, findings.samples)
        estimate = Estimate(missing=missing) if missing else _ESTIMATORS[row["kind"]](row, findings)
        rows.append({**row, **estimate._asdict(), "chance": _chance(row, estimate, confidence)})
    table = pd.DataFrame(rows)
    sign = np.sign(table["value"] * table["ours"]).where(table["unit"].isin(["ratio", "ms"]))
    agrees = np.where(table["chance"] >= 1 - confidence, "yes", "no")
    table["same_sign"] = np.select([sign == 1, sign == -1], ["yes", "no"], "")
    table["agrees"] = np.where(table["chance"].isna(), "", agrees)
    return table[[*paper, *ADDED]]


def _chance(row: Row, estimate: Estimate, confidence: float) -> float:
    """How rare the campaign's number is among exact repetitions of the paper; NaN without an interval."""
    ours, low, high, sites, runs, _ = estimate
    size, paper_size = (runs, PAPER_RUNS) if sites == 1 else (sites, PAPER_SITES)
    if not np.isfinite(high - low):
        return float("nan")
    if row["kind"] == "sites_faster":
        return count_chance(int(row["value"]), PAPER_SITES, round(ours * sites / PAPER_SITES), sites)
    if size < 2:
        return float("nan")
    error = standard_error(low, high, size - 1, confidence)
    errors = (paper_error(error, size, paper_size), error)
    return number_chance(row["value"], ours, errors, size - 1, ROUNDING[row["unit"]])


def _missing(row: Row, samples: Samples) -> str:
    """The network, protocols, site or metrics of a number that the campaign does not have at all."""
    protocols = [name for name in (row["reference"], row["compared"]) if name]
    wanted = [("network", [row["network"]], samples.networks), ("protocol", protocols, samples.protocols)]
    absent = [f"{kind} {name}" for kind, names, present in wanted for name in names if name not in present]
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


def _tabled(row: Row, findings: Findings) -> Estimate:
    """A number that stands in another table."""
    table, columns = TABLED[row["kind"]]
    rows = rows_of(findings[table], **{name: row[name] for name in OVER_SITES})
    if site := row["site"] and campaign_site(row["site"], findings.samples.sites):
        rows = rows_of(rows, site=site)
    if rows.empty:
        lacks = f"{site} is not known to have one server, or has no runs" if site else "no site has runs"
        return Estimate(missing=f"{lacks} of both")
    first = rows.iloc[0]
    value, low, high = (float(first[name]) for name in columns)
    if site:
        return Estimate(value, low, high, sites=1, runs=int(min(first["runs_reference"], first["runs_compared"])))
    return Estimate(value, low, high, sites=int(first["sites"]))


def _sites_faster(row: Row, findings: Findings) -> Estimate:
    rows = rows_of(findings["gains"], **{name: row[name] for name in OVER_SITES})
    verdicts = rows.loc[rows["verdict"] != UNTESTED, "verdict"]
    if verdicts.empty:
        return Estimate(missing="no site has two runs of both")
    faster, sites = int((verdicts == FASTER).sum()), len(verdicts)
    ends = proportion_confint(faster, sites, alpha=1 - findings.hypotheses.confidence, method="beta")
    ours, low, high = (PAPER_SITES * float(share) for share in (faster / sites, *ends))
    return Estimate(ours, low, high, sites)


def _max_gain(row: Row, findings: Findings) -> Estimate:
    rows = rows_of(findings["gains"], network=row["network"], reference=row["reference"])
    rows = rows[rows["metric"].isin(row["metric"].split())].dropna(subset="gain")
    if rows.empty:
        return Estimate(missing="no site has runs of both")
    return Estimate(float(rows["gain"].max()), sites=rows["site"].nunique())


def _example(row: Row, findings: Findings) -> Estimate:
    samples = findings.samples
    site = samples.sites.index(campaign_site(row["site"], samples.sites) or "")
    cell = (samples.networks.index(row["network"]), site, samples.metrics.index(row["metric"]))
    seconds = samples.of(row["compared"])[cell] / 1000
    mean_s = over_runs(seconds[np.isfinite(seconds)], findings.hypotheses.confidence)
    missing = "" if mean_s.runs else "it has no valid run"
    return Estimate(mean_s.mean, mean_s.low, mean_s.high, sites=1, runs=mean_s.runs, missing=missing)


# The kind of a number of the paper → the function that computes the campaign's, if everything it needs was measured.
_ESTIMATORS: dict[str, Callable[[Row, Findings], Estimate]] = {
    **dict.fromkeys(TABLED, _tabled),
    "sites_faster": _sites_faster,
    "max_gain": _max_gain,
    "example": _example,
}
