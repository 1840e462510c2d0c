"""The tables of a report: each with all its digits for CSV, and as a reader wants it for the page and LaTeX."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

import pandas as pd

from analysis.figures.style import named
from analysis.gain import SIGNIFICANT_P
from analysis.hypotheses import Pair
from analysis.report.findings import Findings
from analysis.runs import METRICS, CampaignTable
from measure.validate.checks import UNCHECKED

NOTHING = "-"
# Which notes on the runs of a comparison call for a look at them; few runs do not.
UNUSUAL = "skewed|variance|of 0"


@dataclass(frozen=True)
class View:
    """A table of the report: `data` goes to `name`.csv, `shown` (texts) to the page and `name`.tex."""

    name: str
    title: str
    data: pd.DataFrame
    shown: pd.DataFrame
    note: str = ""


def percent(value: float, digits: int = 1) -> str:
    """A share as a signed percentage."""
    return f"{100 * value:+.{digits}f} %" if math.isfinite(value) else NOTHING


def share(value: float) -> str:
    """A share as a percentage without a sign."""
    return f"{100 * value:.1f} %" if math.isfinite(value) else NOTHING


def ms(value: float) -> str:
    """A time or difference in ms."""
    return (f"{value:.0f}" if abs(value) >= 10 else f"{value:.1f}") if math.isfinite(value) else NOTHING


def signed_ms(value: float) -> str:
    """A difference in ms."""
    return (f"{value:+.0f}" if abs(value) >= 10 else f"{value:+.1f}") if math.isfinite(value) else NOTHING


def p_value(value: float) -> str:
    """A p value."""
    return f"{value:.2g}" if math.isfinite(value) else NOTHING


def count(value: float) -> str:
    """A number of runs."""
    return f"{value:.0f}" if math.isfinite(value) else (NOTHING if math.isnan(value) else "over a million")


def number(value: float) -> str:
    """A number with few digits."""
    return f"{value:.3g}" if math.isfinite(value) else NOTHING


def counted(word: str, count: int) -> str:
    """A number and what it counts: 1 site, 2 sites."""
    return f"{count} {word}" if count == 1 else f"{count} {word}s"


def interval(low: float, high: float, form: Callable[[float], str]) -> str:
    """Both ends of an interval."""
    return f"{form(low)} to {form(high)}" if math.isfinite(low) and math.isfinite(high) else NOTHING


def shown(data: pd.DataFrame, columns: Mapping[str, Any]) -> pd.DataFrame:
    """Texts of `data`: column → its heading, or heading and how to write a value."""
    texts = {}
    for column, told in columns.items():
        heading, form = told if isinstance(told, tuple) else (told, str)
        texts[heading] = [form(value) for value in data[column]]
    return pd.DataFrame(texts)


PAIR = {"compared": ("protocol", named), "reference": ("against", named)}
CELL = {"network": ("network", named), "metric": ("metric", named)}


def protocols(campaign: CampaignTable, names: Sequence[str]) -> View:
    """The paper's Table 1: the protocol settings."""
    told = _settings(campaign, "protocols", names)
    rows = []
    for name, one in told.items():
        sysctls = [f"{key} = {value}" for key, value in one.get("server_sysctls", {}).items()]
        rows.append(
            {
                "protocol": named(name),
                "transport": one.get("transport", NOTHING),
                "congestion control": one.get("congestion_control", NOTHING),
                "initial window": str(one.get("initial_window_packets", NOTHING)),
                "pacing": {True: "yes", False: "no"}.get(one.get("pacing"), NOTHING),  # type: ignore[arg-type]
                "connection options": " ".join(one.get("connection_options", ())) or NOTHING,
                "servers' kernel": "; ".join(sysctls) or NOTHING,
            }
        )
    table = pd.DataFrame(rows)
    return View("table1_protocols", "Protocol settings (the paper's Table 1)", table, table)


def networks(campaign: CampaignTable, names: Sequence[str]) -> View:
    """The paper's Table 2: the networks."""
    told = _settings(campaign, "networks", names)
    columns = {
        "up_mbps": "up [Mbit/s]", "down_mbps": "down [Mbit/s]", "min_rtt_ms": "min. RTT [ms]", "loss": "loss",
        "queue_ms": "queue [ms]",
    }  # fmt: skip
    rows = [
        {"network": named(name)}
        | {title: NOTHING if one.get(key) is None else str(one[key]) for key, title in columns.items()}
        | {"further": further(one)}
        for name, one in told.items()
    ]
    table = pd.DataFrame(rows)
    if not table["further"].any():
        table = table.drop(columns="further")
    return View("table2_networks", "Networks (the paper's Table 2)", table, table)


def further(network: Mapping[str, Any]) -> str:
    """What of a network those of the paper do not have."""
    told = []
    for direction in ("up", "down"):
        if trace := network.get(f"{direction}_trace"):
            told.append(f"rate {direction} by mean, after {PurePath(trace).name}")
    if network.get("jitter_ms"):
        told.append(f"jitter {network['jitter_ms']:g} ms" + (" with reordering" if network.get("reorder") else ""))
    if network.get("loss") and network.get("loss_on", "both") != "both":
        told.append(f"loss on the {network['loss_on']}link alone")
    return "; ".join(told)


def table3(found: Findings) -> View:
    """The paper's Table 3."""
    data = found.handshake
    table = shown(data, {**PAIR, **CELL, "site": "site", "delta_ms": ("less one RTT [ms]", signed_ms)})
    table["95 % interval [ms]"] = _intervals(data, "delta_low", "delta_high", signed_ms)
    table["in RTTs"] = [f"{value:+.3f}" for value in data["round_trips"]]
    table["runs"] = [f"{a}, {b}" for a, b in zip(data["runs_reference"], data["runs_compared"], strict=True)]
    title = "Sites of one server, less one round trip (the paper's Table 3)"
    note = "Protocol minus what it is compared with, after one round trip was taken off the latter."
    return View("table3_one_server", title, data, table, note)


def mean_gains(found: Findings) -> View:
    """Mean gain, mean difference and verdicts over all sites."""
    data = found.summary
    columns = {
        **PAIR, **CELL, "gain": ("mean gain", percent), "delta_ms": ("mean difference [ms]", signed_ms),
        "faster": "faster", "slower": "slower", "no_difference": "no difference", "untested": "untested",
        "sites": "sites",
    }  # fmt: skip
    note = f"Faster, slower: on how many sites, one-way ANOVA, p < {SIGNIFICANT_P}."
    return View("mean_gains", "Over all sites, as in the paper", data, shown(data, columns), note)


def gains_by_site(found: Findings, pair: Pair) -> View:
    """Each site's gain in each metric, for one pair."""
    gained = found.gained
    data = gained[(gained["reference"] == pair.reference) & (gained["compared"] == pair.compared)]
    rows = []
    for (network, site), group in data.groupby(["network", "site"], sort=False):
        by_metric = group.set_index("metric")
        row = {"network": named(str(network)), "site": str(site)}
        for metric in METRICS:
            one = by_metric.loc[metric] if metric in by_metric.index else None
            row[named(metric)] = (
                NOTHING if one is None else percent(one["gain"]) + ("*" if one["p"] < SIGNIFICANT_P else "")
            )
        first = group.iloc[0]
        row["runs"] = f"{first['runs_reference']}, {first['runs_compared']}"
        rows.append(row)
    title = f"{named(pair.compared)} against {named(pair.reference)}, site by site"
    return View(f"gains_{_file(pair)}", title, data, pd.DataFrame(rows), f"* p < {SIGNIFICANT_P} (one-way ANOVA)")


def beside_paper(found: Findings) -> View:
    """Each of the paper's numbers and the campaign's."""
    data = found.paper

    def value(row: Mapping[str, Any], column: str) -> str:
        form = percent if row["unit"] == "ratio" else signed_ms if row["unit"] == "ms" else number
        return form(row[column])

    rows = data.to_dict("records")
    table = pd.DataFrame(
        {
            "number": data["kind"].str.replace("_", " ").tolist(),
            "network": [named(name) for name in data["network"]],
            "protocol": [named(name) or NOTHING for name in data["compared"]],
            "against": [named(name) or NOTHING for name in data["reference"]],
            "site": [name or "all" for name in data["site"]],
            "metric": [" ".join(named(one) for one in name.split()) for name in data["metric"]],
            "unit": ["" if unit == "ratio" else unit for unit in data["unit"]],
            "paper": [value(row, "value") for row in rows],
            "here": [value(row, "ours") if math.isfinite(row["ours"]) else NOTHING for row in rows],
            "interval": [
                f"{value(row, 'ours_low')} to {value(row, 'ours_high')}" if math.isfinite(row["ours_low"]) else NOTHING
                for row in rows
            ],
            "same sign": [name or NOTHING for name in data["same_sign"]],
            "covers the paper's": [name or NOTHING for name in data["covered"]],
            "sites here": [str(count or NOTHING) for count in data["sites"]],
            "remark": ["; ".join(filter(None, (row["missing"], row["note"]))) for row in rows],
        }
    )
    return View("beside_the_paper", "The paper's numbers and this campaign's", data, table)


def over_sites(found: Findings) -> View:
    """Aggregates over sites with both intervals."""
    data = found.over_sites
    table = shown(data, {**PAIR, **CELL, "sites": "sites", "gain": ("mean gain", percent)})
    table["bootstrap interval"] = _intervals(data, "gain_low", "gain_high", percent)
    table["mixed model"] = [percent(value) for value in data["mixed_gain"]]
    table["its interval"] = _intervals(data, "mixed_low", "mixed_high", percent)
    table["between sites"] = [share(value) for value in data["site_sd"]]
    table["between blocks"] = [share(value) for value in data["run_sd"]]
    table["blocks"] = [str(value) for value in data["blocks"]]
    table["remark"] = data["mixed_note"].tolist()
    note = (
        "Intervals hold for sites like these, not only for these. The mixed model's gain is of geometric means; "
        "between sites and between blocks are its standard deviations of the logarithm of the ratio."
    )
    return View("over_sites", "Over all sites, with intervals", data, table, note)


def findings_counted(found: Findings) -> View:
    """How many sites ended with which finding, by pair, network and metric."""
    by = ["reference", "compared", "network", "metric"]
    data = found.contrasts.groupby([*by, "family"], sort=False)["finding"].value_counts().unstack(fill_value=0)
    names = ["faster", "slower", "equivalent", "undecided"]
    data = data.reindex(columns=names, fill_value=0).reset_index()
    table = shown(data, {**PAIR, **CELL, **{name: name for name in names}})
    table["corrected by"] = ["Holm" if declared else "Benjamini-Hochberg" for declared in data["family"]]
    note = (
        f"Faster, slower: corrected p < {found.hypotheses.significant_p}. Equivalent: within "
        f"{100 * found.hypotheses.equivalence_margin:g} %. Undecided: more runs are needed to tell."
    )
    return View("findings", "Faster, slower, equivalent, undecided", data, table, note)


def power(found: Findings) -> View:
    """Runs that a difference needs, over sites."""
    columns = [name for name in found.power if name.startswith("runs_")]
    grouped = found.power.groupby(["network", "metric"], sort=False)
    data = grouped[["scatter", *columns]].median().reset_index()
    headings = {name: (name.removeprefix("runs_").replace("pct", " %"), count) for name in columns}
    table = shown(data, {**CELL, "scatter": ("scatter of a run", share), **headings})
    note = (
        f"Runs of each protocol with which a t test at p < {found.hypotheses.significant_p} finds a difference of so "
        "many percent with probability 0.9; medians over the sites."
    )
    return View("runs_needed", "How many runs a difference needs", found.power, table, note)


def stopping(found: Findings) -> View:
    """What the stopping rule would have done."""
    data = found.stopping
    rows = []
    for network, group in data.groupby("network", sort=False):
        rows.append(
            {
                "network": named(str(network)),
                "sites": str(len(group)),
                "runs of each protocol, measured": f"{group['runs'].sum()}",
                "with RUNS=auto": f"{group['enough'].sum()}",
                "sites decided": f"{(group['undecided'] == 0).sum()}",
            }
        )
    note = (
        "When the stopping rule, asked for the declared family, would have stopped. "
        "Decided: faster, slower or equivalent, all of them."
    )
    return View("stopping", "What RUNS=auto would have saved", data, pd.DataFrame(rows), note)


def diagnostics_of(found: Findings) -> list[View]:
    """The diagnostics' tables."""
    drift_columns = {
        "metric": ("metric", named), "runs": "runs", "drift": ("change, first to last run", percent),
        "drift_p": ("p of a trend", p_value), "position_p": ("p of the place in the block", p_value),
        "machine_p": ("p of the machine", p_value),
        "warning": "warning",
    }  # fmt: skip
    views = [View("drift", "Drift", found.drift, shown(found.drift, drift_columns))]
    if len(found.canaries):
        columns = {
            "canary": "canary", "metric": ("metric", named), "runs": "runs",
            "correlation": ("rank correlation", number), "p": ("p", p_value), "warning": "warning",
        }  # fmt: skip
        views.append(View("canaries", "Canary against metrics", found.canaries, shown(found.canaries, columns)))
    columns = {
        "network": ("network", named), "protocol": ("protocol", named), "attempts": "attempts", "excluded": "excluded",
        "share": ("share", share), "p": ("p of equal shares", p_value), "warning": "warning",
    }  # fmt: skip
    rates = found.exclusion_rates
    views.append(View("exclusions", "Exclusions by protocol", rates, shown(rates, columns)))
    columns = {
        "kind": "kind", "metric": ("metric", named), "tests": "tests", "level": ("below", number),
        "found": ("found", share), "low": ("at least", share), "high": ("at most", share),
        "uniform_p": ("p of uniform", p_value), "warning": "warning",
    }  # fmt: skip
    note = (
        "ANOVA's p values where there is nothing to find: A/A under two names, split a setting's runs in two at random."
    )
    calibration = found.aa_calibration
    views.append(View("calibration", "A/A calibration", calibration, shown(calibration, columns), note))
    return views


def unusual(found: Findings) -> View:
    """The comparisons whose runs ask for a look."""
    data = found.contrasts[found.contrasts["note"].str.contains(UNUSUAL)]
    data = data[["network", "site", "compared", "reference", "metric", "note"]].reset_index(drop=True)
    columns = {"network": ("network", named), "site": "site", **PAIR, "metric": ("metric", named), "note": "note"}
    note = (
        "Wildly skewed: |skewness| above 2, or a run of more than three medians; the intervals of means are then too "
        "narrow, those of the shift hold."
    )
    return View("unusual", "Comparisons that ask for a look at their runs", data, shown(data, columns), note)


def excluded_attempts(campaign: CampaignTable) -> View:
    """Every attempt that does not count."""
    runs = campaign.runs
    data = runs.loc[~runs["valid"], ["network", "site", "protocol", "run", "attempt", "reason"]]
    columns = {
        "network": ("network", named), "site": "site", "protocol": ("protocol", named), "run": "run",
        "attempt": "attempt", "reason": "reason",
    }  # fmt: skip
    return View("excluded_attempts", "Every attempt that does not count", data, shown(data, columns))


def sites(found: Findings) -> View:
    """The recorded sites."""
    data = found.sites
    columns = {name: name.replace("_", " ") for name in data if name != "largest"}
    told = shown(data, columns).replace({"nan": NOTHING, "<NA>": NOTHING})
    note = "Served and Jaccard: as make close found, where it was asked." if "served" in data else ""
    return View("figure1_sites", "The sites (the paper's Figure 1)", data, told, note)


def settings_means(found: Findings) -> View:
    """Mean and spread of each setting."""
    data = found.spread
    columns = {
        "network": ("network", named), "site": "site", "protocol": ("protocol", named), "metric": ("metric", named),
        "runs": "runs", "mean": ("mean [ms]", ms), "median": ("median [ms]", ms), "deviation": ("deviation [ms]", ms),
        "least": ("least [ms]", ms), "most": ("most [ms]", ms), "skewness": ("skewness", number),
    }  # fmt: skip
    return View("settings", "Every setting", data, shown(data, columns))


def _settings(campaign: CampaignTable, group: str, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    told = campaign.document["settings"][group]
    return {name: told[name] if isinstance(told, dict) and isinstance(told.get(name), dict) else {} for name in names}


def _intervals(data: pd.DataFrame, low: str, high: str, form: Callable[[float], str]) -> list[str]:
    return [interval(a, b, form) for a, b in zip(data[low], data[high], strict=True)]


def _file(pair: Pair) -> str:
    return f"{pair.compared}_against_{pair.reference}".replace("+", "plus")


def validation(campaign: CampaignTable) -> View:
    """What was measured of networks and protocols before the first run."""
    data = campaign.validation
    unchecked = data["measured"].astype(str).str.startswith(UNCHECKED)
    shown = pd.DataFrame(
        {
            "of": data["subject"],
            "check": data["name"],
            "configured": data["configured"] + " " + data["tolerance"],
            "measured": data["measured"],
            "verdict": data["passed"].map({True: "ok", False: "FAILED"}).mask(unchecked, NOTHING),
        }
    )
    failed = int((~data["passed"].astype(bool)).sum())
    note = (
        f"{counted('check', int((~unchecked).sum()))} before the first run, {failed} failed."
        if len(data)
        else "This campaign was made without: nothing tells that its networks and protocols were as configured."
    )
    return View("validation", "Networks and protocols, as measured", data, shown, note)
