"""How many runs a difference needs."""

from analysis.figures import runs_needed
from analysis.findings import Findings
from analysis.report import alternatives
from analysis.report.section import ReportFigure, Section
from analysis.report.sections.contract import CampaignSection
from analysis.report.tables import tables_of
from analysis.statistics.planning import NEEDED


def section(findings: Findings) -> Section:
    """The section of the runs that a campaign needs."""
    data = findings["power"]
    figures: tuple[ReportFigure, ...] = ()
    if len(data):
        caption = "Runs of each protocol and site that a difference over sites needs; the line is at the paper's 31."
        finding = alternatives.runs_needed(data, NEEDED[0.05], "5 %")
        arguments = (data, findings.samples.networks)
        figures = (ReportFigure("runs_needed", caption, runs_needed.draw, arguments, finding),)
    return Section("runs", "Runs needed", figures=figures, tables=tables_of(findings, "blocks_needed", "stopping"))


SECTION = CampaignSection("runs", place=80, of=section)
