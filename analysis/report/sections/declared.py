"""The declared hypotheses: the tables and figures behind the answer."""

from collections.abc import Iterator
from dataclasses import replace

import pandas as pd

from analysis.figures import forest
from analysis.findings import Findings
from analysis.processor import DIFFERENT, WITHOUT_UWSGI, lacks_uwsgi
from analysis.report import alternatives
from analysis.report.first_screen import has_wide_intervals
from analysis.report.section import ReportFigure, ReportTable, Section
from analysis.report.sections.contract import CampaignSection
from analysis.report.sentences import equivalence_margin, headlines
from analysis.report.tables import declared_values, report_table, tables_of
from analysis.report.verdicts import marked, verdict_table
from analysis.runs import records, rows_of
from analysis.statistics.confirmatory import CONFIRMATORY
from analysis.statistics.outcomes import NOT_DECIDED
from analysis.statistics.samples import OVER_SITES
from analysis.text import label, level, plural

# Notes of the verdicts' table: for a campaign that might have stopped earlier, and for one that did.
AT_ONCE = " Intervals hold at all looks at once."
SHRUNKEN = " Shrunken: the change of what ended a network early, without what that selection adds on average."
# The note on a change if waiting for a processor may explain it.
WAITED = (
    " * The loads of one protocol waited longer for a processor than those of the other, by more than half of this "
    "difference: it may be another on a machine with more cores."
)
# The note on a margin that the plan could not have shown.
OUT_OF_REACH = " † So many blocks, with this scatter, would not even have shown that a change of 0 is equivalent."


def sections(findings: Findings) -> list[Section]:
    """The section of the declared hypotheses."""
    tables = (confirmatory(findings), *tables_of(findings, "success"))
    values = {"headlines": headlines(findings)}
    return [
        Section("declared", "Declared comparisons", figures=tuple(_figures(findings)), tables=tables, values=values)
    ]


def confirmatory(findings: Findings) -> ReportTable:
    """The table of the verdicts of the declared family."""
    data, margin = verdict_table(findings), equivalence_margin(findings.declared, findings.campaign)
    is_shrunken = data["gain_shrunken"].notna().any()
    stopping = (AT_ONCE if has_wide_intervals(findings) else "") + (SHRUNKEN if is_shrunken else "")
    values = {"tests": plural("test", len(data)), "margin": margin, "stopping": stopping, **declared_values(findings)}
    table = report_table("confirmatory", data, **values)
    texts = table.texts if is_shrunken else table.texts.drop(columns="shrunken")
    texts = texts.assign(verdict=[marked(findings, row) for row in records(data)])
    waits = findings["processor_waits"]
    is_marked = pd.MultiIndex.from_frame(data[OVER_SITES]).isin(
        pd.MultiIndex.from_frame(waits.loc[waits["warning"].astype(str).str.contains(DIFFERENT), OVER_SITES])
    )
    texts = texts.assign(change=texts["change"].mask(is_marked, texts["change"].map("{}*".format)))
    is_out_of_reach = data["verdict"].eq(NOT_DECIDED) & data["blocks"].gt(0) & ~data["is_in_reach"]
    margins = texts["equivalent within"]
    texts = texts.assign(**{"equivalent within": margins.mask(is_out_of_reach, margins.map("{}†".format))})
    waited = WAITED + (f" {WITHOUT_UWSGI}" if lacks_uwsgi(findings.campaign) else "")
    note = table.note + (waited if is_marked.any() else "") + (OUT_OF_REACH if is_out_of_reach.any() else "")
    return replace(table, data=data[CONFIRMATORY], texts=texts, note=note)


def _figures(findings: Findings) -> Iterator[ReportFigure]:
    """A figure of the verdicts for each metric."""
    if not findings["confirmatory"]["blocks"].any():
        return
    for metric in findings.declared.family_metrics:
        rows = rows_of(verdict_table(findings), metric=metric)
        caption = f"Change of {label(metric)} over the sites of this campaign, " + (
            f"with its {level(findings.declared.confidence)} interval."
            if rows["gain_low"].notna().any()
            else "without an interval: there are too few blocks."
        )
        arguments = (rows, findings.campaign.networks, metric, findings.declared.family)
        yield ReportFigure(
            f"confirmatory_{metric}", caption, forest.draw_confirmatory, arguments, alternatives.family(rows)
        )


SECTION = CampaignSection("declared", place=0, of=sections)
