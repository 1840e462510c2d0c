"""Whether a campaign's runs can be compared: their balance, drift and scatter, and the runs that do not count."""

from collections.abc import Iterator
from dataclasses import replace

from analysis.figures import calibration, exclusion_bars, order, within
from analysis.findings import Findings
from analysis.processor import WITHOUT_UWSGI, lacks_uwsgi
from analysis.report import alternatives
from analysis.report.section import ReportFigure, ReportTable, Section
from analysis.report.sections.contract import CampaignSection
from analysis.report.tables import FORMS, report_table, tables_of
from analysis.runs import CampaignTable
from analysis.text import label, level


def sections(findings: Findings) -> list[Section]:
    """The sections of the diagnostics and of the exclusions."""
    return [diagnostics(findings), exclusions(findings)]


def _without_uwsgi(findings: Findings, table: ReportTable) -> ReportTable:
    is_said = table.name == "processor_waits" and lacks_uwsgi(findings.campaign)
    return replace(table, note=f"{table.note} {WITHOUT_UWSGI}") if is_said else table


def diagnostics(findings: Findings) -> Section:
    """The section of the diagnostics."""
    order = ("steps", "carry_over", "wandering")
    names = ("halves", "drift", "processor_waits", *order, "calibration", "link_use", "places")
    unusual = ("unusual",) if len(findings["contrasts"]) else ()
    return Section(
        "diagnostics",
        "Diagnostics",
        figures=tuple(_figures(findings)),
        tables=tuple(_without_uwsgi(findings, table) for table in tables_of(findings, *names)),
        parts=(
            Section("balance", "Balance", tables=tables_of(findings, "pair_balance")),
            Section(
                "within",
                "Within sites",
                figures=tuple(_runs_within_sites(findings)),
                tables=tables_of(findings, *unusual),
            ),
        ),
    )


def _figures(findings: Findings) -> Iterator[ReportFigure]:
    """The figures of the order of runs, of tests of equal samples, and of exclusions."""
    metric, confidence = findings.single_run_metric, findings.declared.confidence
    if len(residuals := findings["residuals"]):
        caption = "Each run's distance from its setting's median, over the campaign and by its place in the block."
        finding = alternatives.order(residuals, metric)
        yield ReportFigure("order", caption, order.draw, (residuals, metric, findings.canary), finding)
    if len(p_values := findings["aa_p_values"]):
        caption = (
            f"p values of tests of equal samples; they should follow the diagonal, in its {level(confidence)} band."
        )
        finding = alternatives.calibration(p_values)
        yield ReportFigure("calibration", caption, calibration.draw, (p_values, confidence), finding)
    if len(exclusions := findings["exclusions"]):
        rates = findings["success_rates"]
        finding = alternatives.exclusions(exclusions, rates.set_index(["network", "protocol"])["attempts"])
        arguments = (rates, exclusions, findings.samples.protocols)
        caption = "Share of attempts that do not count, by gate, on networks that have any."
        yield ReportFigure("exclusions", caption, exclusion_bars.draw, arguments, finding)


def _runs_within_sites(findings: Findings) -> Iterator[ReportFigure]:
    """A figure of all runs for each network."""
    for network in findings.samples.networks:
        caption = f"Every valid run on {label(network)}; the ticks are medians."
        arguments = (findings.samples, network, findings.single_run_metric, findings.samples.protocols)
        yield ReportFigure(f"within_{network}", caption, within.draw, arguments, alternatives.within(*arguments))


def exclusions(findings: Findings) -> Section:
    """The section of the exclusions."""
    tables = tables_of(findings, "loss_bounds", "rejections", "reasons", "empty_settings")
    return Section("exclusions", "Exclusions", tables=(*tables, excluded_attempts(findings.campaign)), unfolded_rows=0)


def exclusions_of_study(campaign: CampaignTable) -> Section:
    """The section of the exclusions of a study's campaign."""
    return Section("exclusions", "Exclusions", tables=(excluded_attempts(campaign),), unfolded_rows=0)


def excluded_attempts(campaign: CampaignTable) -> ReportTable:
    """The table of every attempt that does not count."""
    data = campaign.runs[~campaign.runs["valid"]].reindex(columns=FORMS["excluded_attempts"]["columns"])
    return report_table("excluded_attempts", data)


SECTION = CampaignSection("diagnostics", place=100, of=sections)
