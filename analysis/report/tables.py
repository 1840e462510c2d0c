"""The tables of a campaign's report: each with all its digits for CSV, and as a reader wants it for page and LaTeX."""

import json
import math
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pandas as pd

from analysis import text
from analysis.as_deployed import http3_shares
from analysis.diagnostics import link_use, readings, spread
from analysis.findings import Findings
from analysis.networks import further
from analysis.processor import DIFFERENT, has_warning
from analysis.report.section import ReportTable, text_table
from analysis.report.sentences import equivalence_margin
from analysis.runs import CampaignTable
from analysis.statistics.confirmatory import CONFIRMATORY
from analysis.statistics.hypotheses import Pair
from analysis.statistics.outcomes import EQUIVALENT, SIGNIFICANT_P, VERDICTS
from analysis.statistics.samples import OVER_SITES
from analysis.stopping import interim_analyses_of
from analysis.text import NOTHING, file_name, label, level, listing, number, pair_label, percent, plural, signed_ms
from dataset.checks import UNCHECKED
from tuning.protocols import Protocol

# The note of the verdicts' table on a campaign that might have stopped earlier, and on one that did.
INTERIM = " Intervals hold at all interim analyses at once."
SHRUNKEN = " Shrunken: the gain of what ended a network early, without what that selection adds on average."
# Its note on a gain that may come from waits for a processor.
WAITED = (
    " * The loads of one protocol waited longer for a processor than those of the other, by more than half of this "
    "difference: it may be another on a machine with more cores."
)
# Keys of protocols that Table 1 has in columns.
KEYS_IN_TABLE = {"name", "transport", "server", "alternative", "alternative_settings", "congestion_control"}
KEYS_IN_TABLE |= {"initial_window_packets", "pacing", "connection_options", "server_sysctls"}
# How most tables are shown, by the names of their files.
FORMS: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())


def campaign_tables(findings: Findings) -> dict[str, list[ReportTable]]:
    """Section of the page → its tables."""
    campaign, samples = findings.campaign, findings.samples
    settings = setting_tables(campaign, samples.protocols, samples.networks, findings["spread"])
    is_compared = len(findings["contrasts"]) > 0

    canaries = ["canaries"] if findings.canary else []
    waits = ["processor_waits"] if len(findings["processor_waits"]) else []
    calibration = ["calibration"] if findings.aa_pairs else []

    def tables(*names: str) -> list[ReportTable]:
        return [report_table(name, findings[FORMS[name]["analysis"]], **declared_values(findings)) for name in names]

    web = ["web_metrics"] if len(findings["web_metrics"]) else []
    link_use = ["link_use"] if len(findings["link_use"]) else []

    return {
        "measured": settings,
        "sites": [sites(findings)] if len(findings["sites"]) else [],
        "variants": tables("variants") if len(findings["variants"]) else [],
        "paper": tables("mean_gains", "table3_one_server") if is_compared else [],
        "by_site": [gains_by_site(findings, pair) for pair in findings.hypotheses.comparisons],
        "beside": [beside_paper(findings)],
        "confirmatory": [confirmatory(findings)],
        "losses": tables("success"),
        "balance": tables("pair_balance"),
        "claims": tables("claims", "claim_numbers", "metric_agreement"),
        "beyond": [*tables("sensitivity", "heterogeneity", "shrunken", "over_sites", *web), verdict_counts(findings)]
        if is_compared
        else [],
        "power": tables("blocks_needed", "stopping"),
        "diagnostics": [
            *tables("halves", "drift", *waits, *canaries, "steps", *calibration, *link_use),
            places(findings),
        ],
        "within": tables("unusual") if is_compared else [],
        "exclusions": [*tables("loss_bounds", "reasons", "empty_settings"), excluded_attempts(campaign)],
    }


def declared_values(findings: Findings) -> dict[str, object]:
    """The values of the declared hypotheses in the headings and notes of tables."""
    declared = findings.declared
    return {"confidence": level(declared.confidence), "significant_p": declared.significant_p}


def study_tables(campaign: CampaignTable) -> dict[str, list[ReportTable]]:
    """Section of the page → its tables, for a study's campaign, whose results are in the section of the study."""
    settings = setting_tables(campaign, campaign.protocols, campaign.networks, spread(campaign.runs))
    settings[:2] = replace(settings[0], title="Protocol settings"), replace(settings[1], title="Networks")
    used = link_use(campaign.runs)
    settings += [report_table("link_use", used)] if len(used) else []
    return {"measured": settings, "exclusions": [excluded_attempts(campaign)]}


def setting_tables(
    campaign: CampaignTable, protocol_names: Sequence[str], network_names: Sequence[str], data: pd.DataFrame
) -> list[ReportTable]:
    """The tables of the measured settings; `data` is from `analysis.diagnostics.spread`."""
    tables = [protocols(campaign, protocol_names), networks(campaign, network_names), validation(campaign)]
    if len(shares := http3_shares(campaign)):
        tables.append(report_table("http3_shares", shares))
    if len(of_instruments := readings(campaign)):
        tables.append(report_table("readings", of_instruments))
    return [*tables, report_table("settings", data)]


def report_table(name: str, data: pd.DataFrame, rows: pd.DataFrame | None = None, **values: object) -> ReportTable:
    """The table `name` of `tables.toml`, of `data`, or with texts of `rows` where these are a summary of it; `values`
    go into its headings and its note."""
    return formed(name, FORMS[name], data, rows, paper_p=SIGNIFICANT_P, **values)


def formed(
    name: str, form: Mapping[str, Any], data: pd.DataFrame, rows: pd.DataFrame | None = None, **values: object
) -> ReportTable:
    """The table `name` in the given form: its title, columns and note, as an entry of `tables.toml` has them."""
    columns = dict(_column(column, values) for column in form["columns"])
    texts = text_table(data if rows is None else rows, columns)
    return ReportTable(name, form["title"], data, texts, form.get("note", "").format(**values))


def _column(
    entry: str | list[Any], values: Mapping[str, object]
) -> tuple[str | tuple[str, ...], tuple[str, Callable[..., str]]]:
    """A column of `tables.toml` for `text_table`, with `values` in its heading."""
    if isinstance(entry, str):
        entry = [entry, *FORMS["columns"].get(entry, [entry])]
    names, heading, writer = entry if len(entry) == 3 else [*entry, "{}"]
    write = writer.format if "{" in writer else getattr(text, writer)
    return (tuple(names) if isinstance(names, list) else names), (heading.format(**values), write)


def protocols(campaign: CampaignTable, names: Sequence[str]) -> ReportTable:
    """The paper's Table 1: the protocol settings; of one that is loaded as deployed, those of its TCP."""
    rows = []
    for name in names:
        settings = campaign.settings.protocols.get(name, {})
        beside = settings.get("alternative_settings") or {}
        sysctls = [f"{key} = {value}" for key, value in settings.get("server_sysctls", {}).items()]
        rows.append(
            {
                "protocol": label(name),
                **{
                    key: " and ".join(of[key] for of in (settings, beside) if of.get(key)) or NOTHING
                    for key in ("transport", "server")
                },
                "congestion control": settings.get("congestion_control", NOTHING),
                "initial window": str(settings.get("initial_window_packets", NOTHING)),
                "pacing": {True: "yes", False: "no"}.get(settings.get("pacing"), NOTHING),  # type: ignore[arg-type]
                "connection options": " ".join(settings.get("connection_options", ())) or NOTHING,
                "servers' kernel": "; ".join(sysctls) or NOTHING,
                "other keys": "; ".join(_other_keys(settings)) or NOTHING,
            }
        )
    table = pd.DataFrame(rows)
    if (table["other keys"] == NOTHING).all():
        table = table.drop(columns="other keys")
    return ReportTable("table1_protocols", "Protocol settings (the paper's Table 1)", table, table)


def _other_keys(settings: Mapping[str, Any]) -> Iterator[str]:
    """The keys of a protocol that have no column in Table 1, where they are not their default; and the settings of
    the browser's kernel that differ from those of the servers'."""
    defaults = {key.name: key.default for key in fields(Protocol)}
    of_servers = settings.get("server_sysctls", {})
    for key, value in settings.items():
        if key == "client_sysctls":
            yield from (f"{name} = {text} (browser)" for name, text in value.items() if of_servers.get(name) != text)
        elif key not in KEYS_IN_TABLE and value != defaults.get(key):
            yield f"{key} = {json.dumps(value)}"


def networks(campaign: CampaignTable, names: Sequence[str]) -> ReportTable:
    """The paper's Table 2: the networks."""
    columns = {
        "up_mbps": "up [Mbit/s]", "down_mbps": "down [Mbit/s]", "min_rtt_ms": "min. RTT [ms]", "loss": "loss",
        "queue_ms": "queue [ms]",
    }  # fmt: skip
    rows = []
    for name in names:
        settings = campaign.network_settings.get(name, {})
        texts = {title: NOTHING if settings.get(key) is None else str(settings[key]) for key, title in columns.items()}
        rows.append({"network": label(name), **texts, "further": "; ".join(further(settings))})
    table = pd.DataFrame(rows)
    if not table["further"].any():
        table = table.drop(columns="further")
    return ReportTable("table2_networks", "Networks (the paper's Table 2)", table, table)


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
        row["runs"] = "; ".join(_runs_of_metrics(group))
        rows.append(row)
    title = f"{pair_label(pair.compared, pair.reference)}, site by site"
    name = file_name(f"gains_{pair.compared}_against_{pair.reference}")
    return ReportTable(name, title, data, pd.DataFrame(rows), f"* p < {SIGNIFICANT_P} (the paper's one-way ANOVA)")


def _runs_of_metrics(group: pd.DataFrame) -> list[str]:
    """The numbers of runs of both protocols: once where all metrics have the same, else of each group of metrics."""
    sizes = group.groupby(["runs_reference", "runs_compared"], sort=False)["metric"]
    if sizes.ngroups == 1:
        return [f"{reference}, {compared}" for (reference, compared), _ in sizes]
    return [
        f"{reference}, {compared} ({listing([label(metric) for metric in metrics])})"
        for (reference, compared), metrics in sizes
    ]


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
        ("unit", "ours_low", "ours_high"): (f"{level(findings.declared.confidence)} interval", value),
        "same_sign": ("same sign", or_nothing),
        "agrees": ("as a repetition", or_nothing),
        "chance": ("by chance", lambda chance: f"{100 * chance:.2g} %" if math.isfinite(chance) else NOTHING),
        "sites": ("sites here", or_nothing),
        ("missing", "note"): ("remark", lambda *remarks: "; ".join(filter(None, remarks))),
    }
    data = findings["paper"]
    return ReportTable("beside_the_paper", "The paper's numbers and this campaign's", data, text_table(data, columns))


def verdict_counts(findings: Findings) -> ReportTable:
    """The number of sites with each verdict, by pair, network and metric."""
    verdicts = findings["contrasts"].groupby(OVER_SITES, sort=False)["verdict"].value_counts()
    data = verdicts.unstack(fill_value=0).reindex(columns=VERDICTS, fill_value=0).reset_index()
    return report_table("site_verdicts", data, **declared_values(findings))


def confirmatory(findings: Findings) -> ReportTable:
    """The verdicts of the declared family."""
    data, margin = findings["confirmatory"], equivalence_margin(findings.declared, findings.campaign)
    is_shrunken = data["gain_shrunken"].notna().any()
    stopping = (INTERIM if interim_analyses_of(findings.campaign) else "") + (SHRUNKEN if is_shrunken else "")
    values = {"tests": len(data), "margin": margin, "stopping": stopping, **declared_values(findings)}
    table = report_table("confirmatory", data, **values)
    texts = table.texts if is_shrunken else table.texts.drop(columns="shrunken")
    is_small = (data["equivalence_p_corrected"] < findings.declared.significant_p) & data["verdict"].ne(EQUIVALENT)
    texts = texts.assign(verdict=data["verdict"].mask(is_small, data["verdict"].map("{}, within the margin".format)))
    waits = findings["processor_waits"]
    is_marked = pd.MultiIndex.from_frame(data[OVER_SITES]).isin(
        pd.MultiIndex.from_frame(waits.loc[has_warning(waits, DIFFERENT), OVER_SITES])
    )
    texts = texts.assign(gain=texts["gain"].mask(is_marked, texts["gain"].map("{}*".format)))
    note = table.note + (WAITED if is_marked.any() else "")
    return replace(table, data=data[CONFIRMATORY], texts=texts, note=note)


def places(findings: Findings) -> ReportTable:
    """How often each protocol was measured at each place of its block."""
    data = findings["places"]
    names = {"network": label, "protocol": label}
    texts = data.assign(**{name: data[name].map(write) for name, write in names.items()})
    return ReportTable(
        "places", FORMS["places"]["title"], data, texts.rename(columns=lambda name: name.replace("_", " "))
    )


def excluded_attempts(campaign: CampaignTable) -> ReportTable:
    """Every attempt that does not count."""
    data = campaign.runs[~campaign.runs["valid"]].reindex(columns=FORMS["excluded_attempts"]["columns"])
    return report_table("excluded_attempts", data, data.astype(object).where(data.notna(), NOTHING))


def sites(findings: Findings) -> ReportTable:
    """The recorded sites."""
    data = findings["sites"]
    return report_table("figure1_sites", data, data.astype(object).where(data.notna(), NOTHING))


def validation(campaign: CampaignTable) -> ReportTable:
    """The checks of networks and protocols before the first run."""
    data = campaign.validation
    is_unchecked = data["measured"].astype(str).str.startswith(UNCHECKED)
    verdicts = data["passed"].map({True: "ok", False: "FAILED"}).mask(is_unchecked, NOTHING)
    failures = int((~data["passed"].astype(bool)).sum())
    summary = (
        f"{plural('check', int((~is_unchecked).sum()))} before the first run, {failures} failed."
        if len(data)
        else "This campaign was made without: nothing shows that its networks and protocols were as configured."
    )
    return report_table("validation", data, data.assign(passed=verdicts), summary=summary)
