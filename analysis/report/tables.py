"""The tables of a campaign's report: each with all its digits for CSV, and as a reader wants it for page and LaTeX."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import PurePath
from typing import Any

import pandas as pd

from analysis.diagnostics import spread
from analysis.hypotheses import Pair
from analysis.outcomes import EQUIVALENT, FASTER, SIGNIFICANT_P, SLOWER, UNDECIDED
from analysis.report.findings import Findings
from analysis.report.section import ReportTable, text_table
from analysis.runs import CampaignTable
from analysis.text import (
    NOTHING,
    file_name,
    interval,
    label,
    label_with_unit,
    ms,
    number,
    p_value,
    pair_label,
    percent,
    plural,
    share,
    signed_ms,
    whole_number,
)
from measure.validate.checks import UNCHECKED

# Notes on the runs of a comparison that ask a reader to look at these; notes that there are few do not.
UNUSUAL = "skewed|variance|of 0"
# Columns that many tables have, for `text_table`.
PAIR = {"compared": ("protocol", label), "reference": ("against", label)}
CELL = {"network": ("network", label), "metric": ("metric", label)}
SETTING = {"network": ("network", label), "site": "site", "protocol": ("protocol", label)}


def campaign_tables(findings: Findings) -> dict[str, list[ReportTable]]:
    """Section of the page → its tables."""
    campaign, samples = findings.campaign, findings.samples
    return {
        "measured": [
            protocols(campaign, samples.protocols),
            networks(campaign, samples.networks),
            validation(campaign),
            settings(findings.spread),
        ],
        "sites": [sites(findings)] if len(findings.sites) else [],
        "paper": [mean_gains(findings), one_server_sites(findings)] if len(findings.gains) else [],
        "by_site": [gains_by_site(findings, pair) for pair in findings.hypotheses.comparisons],
        "beside": [beside_paper(findings)],
        "beyond": [over_sites(findings), finding_counts(findings)] if len(findings.contrasts) else [],
        "power": [power(findings), stopping(findings)],
        "diagnostics": diagnostics(findings),
        "within": [unusual(findings)] if len(findings.contrasts) else [],
        "exclusions": [excluded_attempts(campaign)],
    }


def unfilmed_tables(campaign: CampaignTable) -> dict[str, list[ReportTable]]:
    """The same of an unfilmed campaign, whose results are in the section of its study."""
    setting_tables = [
        replace(protocols(campaign, campaign.protocols), title="Protocol settings"),
        replace(networks(campaign, campaign.networks), title="Networks"),
        validation(campaign),
        settings(spread(campaign.runs)),
    ]
    return {"measured": setting_tables, "exclusions": [excluded_attempts(campaign)]}


def protocols(campaign: CampaignTable, names: Sequence[str]) -> ReportTable:
    """The paper's Table 1: the protocol settings."""
    rows = []
    for name in names:
        settings = campaign.document.protocols.get(name, {})
        sysctls = [f"{key} = {value}" for key, value in settings.get("server_sysctls", {}).items()]
        rows.append(
            {
                "protocol": label(name),
                "transport": settings.get("transport", NOTHING),
                "congestion control": settings.get("congestion_control", NOTHING),
                "initial window": str(settings.get("initial_window_packets", NOTHING)),
                "pacing": {True: "yes", False: "no"}.get(settings.get("pacing"), NOTHING),  # type: ignore[arg-type]
                "connection options": " ".join(settings.get("connection_options", ())) or NOTHING,
                "servers' kernel": "; ".join(sysctls) or NOTHING,
            }
        )
    table = pd.DataFrame(rows)
    return ReportTable("table1_protocols", "Protocol settings (the paper's Table 1)", table, table)


def networks(campaign: CampaignTable, names: Sequence[str]) -> ReportTable:
    """The paper's Table 2: the networks."""
    columns = {
        "up_mbps": "up [Mbit/s]", "down_mbps": "down [Mbit/s]", "min_rtt_ms": "min. RTT [ms]", "loss": "loss",
        "queue_ms": "queue [ms]",
    }  # fmt: skip
    rows = []
    for name in names:
        settings = campaign.document.networks.get(name, {})
        texts = {title: NOTHING if settings.get(key) is None else str(settings[key]) for key, title in columns.items()}
        rows.append({"network": label(name), **texts, "further": further(settings)})
    table = pd.DataFrame(rows)
    if not table["further"].any():
        table = table.drop(columns="further")
    return ReportTable("table2_networks", "Networks (the paper's Table 2)", table, table)


def further(network: Mapping[str, Any]) -> str:
    """The properties of a network that those of the paper do not have."""
    texts = []
    for direction in ("up", "down"):
        if trace := network.get(f"{direction}_trace"):
            texts.append(f"rate {direction} by mean, after {PurePath(trace).name}")
    if network.get("jitter_ms"):
        texts.append(f"jitter {network['jitter_ms']:g} ms" + (" with reordering" if network.get("reorder") else ""))
    if network.get("loss") and network.get("loss_on", "both") != "both":
        texts.append(f"loss on the {network['loss_on']}link alone")
    return "; ".join(texts)


def one_server_sites(findings: Findings) -> ReportTable:
    """The paper's Table 3."""
    columns: dict[Any, Any] = {
        **PAIR, **CELL, "site": "site", "delta_ms": ("less one RTT [ms]", signed_ms),
        ("delta_low", "delta_high"): ("95 % interval [ms]", partial(interval, form=signed_ms)),
        "round_trips": ("in RTTs", "{:+.3f}".format), ("runs_reference", "runs_compared"): ("runs", "{}, {}".format),
    }  # fmt: skip
    title = "Sites of one server, less one round trip (the paper's Table 3)"
    note = "Protocol - (protocol that it is compared with - one round trip)."
    return ReportTable("table3_one_server", title, findings.handshake, text_table(findings.handshake, columns), note)


def mean_gains(findings: Findings) -> ReportTable:
    """Mean gain, mean difference and verdicts over all sites."""
    data = findings.summary
    columns = {
        **PAIR, **CELL, "gain": ("mean gain", percent), "delta_ms": ("mean difference [ms]", signed_ms),
        "faster": "faster", "slower": "slower", "no_difference": "no difference", "untested": "untested",
        "sites": "sites",
    }  # fmt: skip
    note = f"Faster, slower: on how many sites, one-way ANOVA, p < {SIGNIFICANT_P}."
    return ReportTable("mean_gains", "Over all sites, as in the paper", data, text_table(data, columns), note)


def gains_by_site(findings: Findings, pair: Pair) -> ReportTable:
    """Each site's gain in each metric, for one pair."""
    data = findings.gains_of(pair)
    rows = []
    for (network, site), group in data.groupby(["network", "site"], sort=False):
        by_metric = group.set_index("metric")
        row = {"network": label(str(network)), "site": str(site)}
        for metric in findings.samples.metrics:
            cell = by_metric.loc[metric] if metric in by_metric.index else {"gain": math.nan, "p": math.nan}
            row[label(metric)] = percent(cell["gain"]) + ("*" if cell["p"] < SIGNIFICANT_P else "")
        first = group.iloc[0]
        row["runs"] = f"{first['runs_reference']}, {first['runs_compared']}"
        rows.append(row)
    title = f"{pair_label(pair.compared, pair.reference)}, site by site"
    name = file_name(f"gains_{pair.compared}_against_{pair.reference}")
    return ReportTable(name, title, data, pd.DataFrame(rows), f"* p < {SIGNIFICANT_P} (one-way ANOVA)")


def beside_paper(findings: Findings) -> ReportTable:
    """Each of the paper's numbers and the campaign's."""
    forms = {"ratio": percent, "ms": signed_ms}

    def value(unit: str, *values: float) -> str:
        form = forms.get(unit, number)
        return " to ".join(map(form, values)) if math.isfinite(values[0]) else NOTHING

    def or_nothing(text: object) -> str:
        return str(text or NOTHING)

    columns = {
        "kind": ("number", lambda kind: kind.replace("_", " ")),
        "network": ("network", label),
        "compared": ("protocol", lambda name: label(name) or NOTHING),
        "reference": ("against", lambda name: label(name) or NOTHING),
        "site": ("site", lambda name: name or "all"),
        "metric": ("metric", lambda names: " ".join(map(label, names.split()))),
        "unit": ("unit", lambda unit: "" if unit == "ratio" else unit),
        ("unit", "value"): ("paper", value),
        ("unit", "ours"): ("here", value),
        ("unit", "ours_low", "ours_high"): ("interval", value),
        "same_sign": ("same sign", or_nothing),
        "covered": ("covers the paper's", or_nothing),
        "sites": ("sites here", or_nothing),
        ("missing", "note"): ("remark", lambda *remarks: "; ".join(filter(None, remarks))),
    }
    data = findings.paper
    return ReportTable("beside_the_paper", "The paper's numbers and this campaign's", data, text_table(data, columns))


def over_sites(findings: Findings) -> ReportTable:
    """Aggregates over sites with both intervals."""
    percents = partial(interval, form=percent)
    columns: dict[Any, Any] = {
        **PAIR, **CELL, "sites": "sites", "gain": ("mean gain", percent),
        ("gain_low", "gain_high"): ("bootstrap interval", percents), "mixed_gain": ("mixed model", percent),
        ("mixed_low", "mixed_high"): ("its interval", percents), "site_sd": ("between sites", share),
        "run_sd": ("between blocks", share), "blocks": "blocks", "mixed_note": "remark",
    }  # fmt: skip
    note = (
        "Intervals hold for sites like these, not only for these. The mixed model's gain is of geometric means; "
        "between sites and between blocks are its standard deviations of the logarithm of the ratio."
    )
    data = findings.over_sites
    return ReportTable("over_sites", "Over all sites, with intervals", data, text_table(data, columns), note)


def finding_counts(findings: Findings) -> ReportTable:
    """The number of sites with each finding, by pair, network and metric."""
    by = ["reference", "compared", "network", "metric"]
    data = findings.contrasts.groupby([*by, "family"], sort=False)["finding"].value_counts().unstack(fill_value=0)
    names = [FASTER, SLOWER, EQUIVALENT, UNDECIDED]
    data = data.reindex(columns=names, fill_value=0).reset_index()
    corrections = {True: "Holm", False: "Benjamini-Hochberg"}
    correction = {"family": ("corrected by", corrections.get)}
    table = text_table(data, {**PAIR, **CELL, **{name: name for name in names}, **correction})
    note = (
        f"Faster, slower: corrected p < {findings.hypotheses.significant_p}. Equivalent: within "
        f"{100 * findings.hypotheses.equivalence_margin:g} %. Undecided: more runs are needed."
    )
    return ReportTable("findings", "Faster, slower, equivalent, undecided", data, table, note)


def power(findings: Findings) -> ReportTable:
    """Runs that a difference needs, over sites."""
    columns = [name for name in findings.power if name.startswith("runs_")]
    groups = findings.power.groupby(["network", "metric"], sort=False)
    data = groups[["scatter", *columns]].median().reset_index()
    headings = {name: (name.removeprefix("runs_").replace("pct", " %"), whole_number) for name in columns}
    table = text_table(data, {**CELL, "scatter": ("scatter of a run", share), **headings})
    note = (
        f"Runs of each protocol with which a t test at p < {findings.hypotheses.significant_p} finds a difference of "
        "so many percent with probability 0.9; medians over the sites."
    )
    return ReportTable("runs_needed", "How many runs a difference needs", findings.power, table, note)


def stopping(findings: Findings) -> ReportTable:
    """The number of runs with the stopping rule."""
    data = findings.stopping
    networks = data.assign(is_decided=data["undecided"] == 0).groupby("network", sort=False)
    columns = {
        "network": ("network", label), "site": "sites", "runs": "runs of each protocol, measured",
        "enough": "with RUNS=auto", "is_decided": "sites decided",
    }  # fmt: skip
    sums = networks.agg({"site": "size", "runs": "sum", "enough": "sum", "is_decided": "sum"}).reset_index()
    texts = text_table(sums, columns) if len(sums) else pd.DataFrame()
    note = (
        "The runs after which the stopping rule, applied to the declared family, would have stopped. "
        "Decided: every pair is faster, slower or equivalent in every metric."
    )
    return ReportTable("stopping", "What RUNS=auto would have saved", data, texts, note)


def diagnostics(findings: Findings) -> list[ReportTable]:
    """The diagnostics' tables."""
    drift = {
        "metric": ("metric", label), "runs": "runs", "drift": ("change, first to last run", percent),
        "drift_p": ("p of a trend", p_value), "position_p": ("p of the place in the block", p_value),
        "machine_p": ("p of the machine", p_value), "warning": "warning",
    }  # fmt: skip
    canaries = {
        "canary": "canary", "metric": ("metric", label), "runs": "runs",
        "correlation": ("rank correlation", number), "p": ("p", p_value), "warning": "warning",
    }  # fmt: skip
    exclusions = {
        "network": ("network", label), "protocol": ("protocol", label), "attempts": "attempts", "excluded": "excluded",
        "share": ("share", share), "p": ("p of equal shares", p_value), "warning": "warning",
    }  # fmt: skip
    calibration = {
        "kind": "kind", "metric": ("metric", label), "tests": "tests", "level": ("below", number),
        "found": ("found", share), "low": ("at least", share), "high": ("at most", share),
        "uniform_p": ("p of uniform", p_value), "warning": "warning",
    }  # fmt: skip
    note = "ANOVA's p values of equal samples. A/A: one protocol, two names; split: a setting's runs in random halves."
    return [
        ReportTable(name, title, data, text_table(data, columns), note)
        for name, title, data, columns, note in (
            ("drift", "Drift", findings.drift, drift, ""),
            ("canaries", "Canary against metrics", findings.canaries, canaries, ""),
            ("exclusions", "Exclusions by protocol", findings.exclusion_rates, exclusions, ""),
            ("calibration", "A/A calibration", findings.aa_calibration, calibration, note),
        )
        if name != "canaries" or len(data)
    ]


def unusual(findings: Findings) -> ReportTable:
    """The comparisons with unusual runs."""
    data = findings.contrasts[findings.contrasts["note"].str.contains(UNUSUAL)]
    data = data[["network", "site", "compared", "reference", "metric", "note"]].reset_index(drop=True)
    columns = {"network": CELL["network"], "site": "site", **PAIR, "metric": CELL["metric"], "note": "note"}
    note = (
        "Wildly skewed: |skewness| above 2, or a run of more than three medians; the intervals of means are then too "
        "narrow, those of the shift hold."
    )
    return ReportTable("unusual", "Comparisons with unusual runs", data, text_table(data, columns), note)


def excluded_attempts(campaign: CampaignTable) -> ReportTable:
    """Every attempt that does not count."""
    runs = campaign.runs
    data = runs.loc[~runs["valid"], ["network", "site", "protocol", "run", "attempt", "reason"]]
    columns = {**SETTING, "run": "run", "attempt": "attempt", "reason": "reason"}
    return ReportTable("excluded_attempts", "Every attempt that does not count", data, text_table(data, columns))


def sites(findings: Findings) -> ReportTable:
    """The recorded sites."""
    data = findings.sites
    columns = {name: name.replace("_", " ") for name in data if name != "largest"}
    texts = text_table(data, columns).replace({"nan": NOTHING, "<NA>": NOTHING})
    note = "Served and Jaccard: from make close, of the sites on which it was run." if "served" in data else ""
    return ReportTable("figure1_sites", "The sites (the paper's Figure 1)", data, texts, note)


def settings(data: pd.DataFrame) -> ReportTable:
    """Mean and spread of each setting; `data` is from `analysis.diagnostics.spread`."""
    columns = {
        **SETTING, "metric": ("metric", label_with_unit), "runs": "runs", "mean": ("mean", ms),
        "median": ("median", ms), "deviation": ("deviation", ms), "least": ("least", ms),
        "most": ("most", ms), "skewness": ("skewness", number),
    }  # fmt: skip
    return ReportTable("settings", "Every setting", data, text_table(data, columns))


def validation(campaign: CampaignTable) -> ReportTable:
    """The checks of networks and protocols before the first run."""
    data = campaign.validation
    is_unchecked = data["measured"].astype(str).str.startswith(UNCHECKED)
    columns = {
        "subject": "of",
        "name": "check",
        ("configured", "tolerance"): ("configured", "{} {}".format),
        "measured": "measured",
        "passed": ("verdict", {True: "ok", False: "FAILED"}.get),
    }
    texts = text_table(data, columns)
    texts["verdict"] = texts["verdict"].mask(is_unchecked, NOTHING)
    failures = int((~data["passed"].astype(bool)).sum())
    note = (
        f"{plural('check', int((~is_unchecked).sum()))} before the first run, {failures} failed."
        if len(data)
        else "This campaign was made without: nothing shows that its networks and protocols were as configured."
    )
    return ReportTable("validation", "Networks and protocols, as measured", data, texts, note)
