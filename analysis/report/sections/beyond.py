"""The gains by means beyond the paper's: intervals over sites, and how far these depend on the means."""

from analysis.figures import forest
from analysis.findings import Findings
from analysis.report import alternatives
from analysis.report.section import ReportFigure, ReportTable, Section
from analysis.report.sections.contract import CampaignSection
from analysis.report.tables import declared_values, report_table, tables_of
from analysis.statistics.outcomes import VERDICTS
from analysis.statistics.samples import OVER_SITES
from analysis.text import level


def section(findings: Findings) -> Section:
    """The section of what the paper has not."""
    data, samples = findings["aggregates"], findings.samples
    figures: tuple[ReportFigure, ...] = ()
    tables: tuple[ReportTable, ...] = ()
    if len(data):
        confidence = level(findings.declared.confidence)
        caption = f"Mean gain over sites with two {confidence} intervals that hold for sites like these."
        arguments = (data, samples.networks, samples.metrics, findings.hypotheses.comparisons)
        finding = alternatives.over_sites(data, findings.single_run_metric)
        figures = (ReportFigure("over_sites", caption, forest.draw, arguments, finding),)
    if len(findings["contrasts"]):
        names = ("sensitivity", "heterogeneity", "shrunken", "over_sites", "web_metrics")
        tables = (*tables_of(findings, *names), verdict_counts(findings))
    return Section("beyond", "Beyond the paper", figures=figures, tables=tables, unfolded_figures=0, unfolded_rows=0)


def verdict_counts(findings: Findings) -> ReportTable:
    """The number of sites with each verdict, by pair, network and metric."""
    verdicts = findings["contrasts"].groupby(OVER_SITES, sort=False)["verdict"].value_counts()
    data = verdicts.unstack(fill_value=0).reindex(columns=VERDICTS, fill_value=0).reset_index()
    return report_table("site_verdicts", data, **declared_values(findings))


SECTION = CampaignSection("beyond", place=50, of=section)
