"""The attempts that do not count."""

from analysis.findings import Findings
from analysis.report.section import ReportTable, Section
from analysis.report.sections.contract import CampaignSection
from analysis.report.tables import FORMS, report_table, tables_of
from analysis.runs import CampaignTable

NAME, TITLE = "exclusions", "Exclusions"


def section(findings: Findings) -> Section:
    """The section of the exclusions."""
    tables = tables_of(findings, "loss_bounds", "reasons", "empty_settings")
    return Section(NAME, TITLE, tables=(*tables, excluded_attempts(findings.campaign)), unfolded_rows=0)


def section_of_study(campaign: CampaignTable) -> Section:
    """The section of a study's campaign."""
    return Section(NAME, TITLE, tables=(excluded_attempts(campaign),), unfolded_rows=0)


def excluded_attempts(campaign: CampaignTable) -> ReportTable:
    """Every attempt that does not count."""
    data = campaign.runs[~campaign.runs["valid"]].reindex(columns=FORMS["excluded_attempts"]["columns"])
    return report_table("excluded_attempts", data)


SECTION = CampaignSection(NAME, place=110, of=section)
