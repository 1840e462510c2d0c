"""The settings that a campaign measured, and its sites."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import pandas as pd

from analysis.diagnostics import link_use, readings, spread
from analysis.figures import figure1
from analysis.figures.style import NETWORKS
from analysis.findings import Findings
from analysis.networks import further
from analysis.report import alternatives
from analysis.report.level_ground import http3_shares
from analysis.report.section import ReportFigure, ReportTable, Section
from analysis.report.sections.contract import CampaignSection
from analysis.report.tables import report_table, tables_of
from analysis.runs import CampaignTable
from analysis.statistics.outcomes import LEAST_SITES
from analysis.text import NOTHING, label
from dataset.checks import UNCHECKED, outcomes_in_words
from tuning.protocols import Protocol

NAME = "measured"
# Keys of protocols that have a column in Table 1.
KEYS_IN_TABLE = {"name", "transport", "server", "alternative", "alternative_settings", "congestion_control"}
KEYS_IN_TABLE |= {"initial_window_packets", "pacing", "connection_options", "server_sysctls"}


def sections(findings: Findings) -> list[Section]:
    """The section of the settings and the sites."""
    campaign, samples = findings.campaign, findings.samples
    settings = setting_tables(campaign, samples.protocols, samples.networks, findings["spread"])
    figures: tuple[ReportFigure, ...] = ()
    if len(sites := findings["sites"]) >= LEAST_SITES:
        caption = (
            "Download size and number of servers of each site: medians of its loads until the load event (bars), and "
            "what was recorded (lines); bars are what was recorded where no load has the number."
        )
        figures = (ReportFigure("figure1", caption, figure1.draw, (sites,), alternatives.sites(sites)),)
    missing = [name for name in samples.sites if name not in set(sites["site"])]
    tables, values = tables_of(findings, "figure1_sites", "variants"), {"missing": missing}
    of_sites = Section("sites", "Sites", figures=figures, tables=tables, values=values)
    return [Section(NAME, "Settings and sites", tables=tuple(settings), parts=(of_sites,))]


def measured_of_study(campaign: CampaignTable) -> Section:
    """The section of a study's campaign; the study's own section has the results."""
    settings = setting_tables(campaign, campaign.protocols, campaign.networks, spread(campaign.runs))
    settings[:2] = replace(settings[0], title="Protocol settings"), replace(settings[1], title="Networks")
    used = link_use(campaign.runs)
    settings += [report_table("link_use", used)] if len(used) else []
    return Section(NAME, "Settings", tables=tuple(settings))


def setting_tables(
    campaign: CampaignTable, protocol_names: Sequence[str], network_names: Sequence[str], data: pd.DataFrame
) -> list[ReportTable]:
    """The tables of the measured settings; `data` is from `analysis.diagnostics.spread`."""
    tables = [protocols(campaign, protocol_names), networks(campaign, network_names), validation(campaign)]
    optional = {"http3_shares": http3_shares(campaign), "readings": readings(campaign)}
    tables += [report_table(name, rows) for name, rows in optional.items() if len(rows)]
    return [*tables, report_table("settings", data)]


def protocols(campaign: CampaignTable, names: Sequence[str]) -> ReportTable:
    """The paper's Table 1: the protocol settings. A protocol that is loaded as deployed has the settings of its TCP."""
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
    """The keys of a protocol that have no column in Table 1 and are not at their default; and the settings of the
    browser's kernel that differ from those of the servers' kernel."""
    defaults = {key.name: key.default for key in fields(Protocol)}
    of_servers = settings.get("server_sysctls", {})
    for key, value in settings.items():
        if key == "client_sysctls":
            yield from (f"{name} = {text} (browser)" for name, text in value.items() if of_servers.get(name) != text)
        elif key not in KEYS_IN_TABLE and value != defaults.get(key):
            yield f"{key} = {json.dumps(value)}"


def networks(campaign: CampaignTable, names: Sequence[str]) -> ReportTable:
    """The networks, which are the paper's Table 2 if all of them are the paper's."""
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
    title = "Networks (the paper's Table 2)" if set(names) <= set(NETWORKS) else "Networks"
    return ReportTable("table2_networks", title, table, table)


def validation(campaign: CampaignTable) -> ReportTable:
    """The checks of networks and protocols before the first run."""
    data = campaign.validation
    is_unchecked = data["measured"].astype(str).str.startswith(UNCHECKED)
    verdicts = data["passed"].map({True: "ok", False: "FAILED"}).mask(is_unchecked, NOTHING)
    table = report_table("validation", data, summary=validation_summary(campaign))
    return replace(table, texts=table.texts.assign(verdict=verdicts))


def validation_summary(campaign: CampaignTable) -> str:
    """How many checks passed, how many failed, and which do not apply."""
    data = campaign.validation
    if data.empty:
        return "None: nothing shows that networks and protocols were as configured."
    outcomes = zip(data["measured"].astype(str), data["passed"].astype(bool), strict=True)
    return f"Before the first run, {outcomes_in_words(outcomes)}."


SECTION = CampaignSection(NAME, place=10, of=sections)
