"""All comparisons of a campaign, which the page's script filters for the reader, and the runs that they need."""

import json
import math
from typing import Any

import pandas as pd
from markupsafe import Markup

from analysis.figures import runs_needed
from analysis.findings import Findings
from analysis.report import alternatives
from analysis.report.section import ReportFigure, Section
from analysis.report.sections.contract import CampaignSection
from analysis.report.tables import FORMS, tables_of
from analysis.statistics.contrasts import RATIO
from analysis.statistics.hypotheses import Pair
from analysis.statistics.planning import NEEDED
from analysis.statistics.samples import CELL
from analysis.text import label, label_with_unit, pair_label

# The significant digits of the comparisons' numbers.
DIGITS = 4


def sections(findings: Findings) -> list[Section]:
    """The sections of the comparisons and of their runs."""
    return [Section("comparisons", "Comparisons", values={"data": Markup(explorer(findings))}), runs(findings)]


def explorer(findings: Findings) -> str:
    """All comparisons as JSON for the page's script: first all names, then for each comparison a row of indices and
    numbers."""
    samples, pairs = findings.samples, findings.hypotheses.comparisons
    numbers = dict(FORMS["comparisons"]["columns"])
    # A campaign without a pair lacks most of these columns.
    comparisons = findings.comparisons.reindex(columns=["reference", "compared", *CELL, *numbers, "verdict", "note"])
    pair_columns = zip(comparisons["reference"], comparisons["compared"], strict=True)
    columns: list[list[Any]] = [[pairs.index(Pair(*names)) for names in pair_columns]]
    for column, names in (("network", samples.networks), ("metric", samples.metrics), ("site", samples.sites)):
        columns.append(pd.Index(names).get_indexer(comparisons[column]).tolist())
    columns += [[_short(value) for value in comparisons[name].tolist()] for name in numbers]
    columns += [comparisons["verdict"].tolist(), comparisons["note"].tolist()]
    document = {
        "pairs": [pair_label(pair.compared, pair.reference) for pair in pairs],
        "networks": [label(name) for name in samples.networks],
        "metrics": [label_with_unit(name) for name in samples.metrics],
        "sites": samples.sites,
        "headings": [*numbers.values(), "verdict", "note"],
        "shares": [list(numbers).index(name) for name in ("gain", *RATIO)],
        "rows": list(zip(*columns, strict=True)),
    }
    return script_json(document)


def script_json(document: Any) -> str:
    """`document` as JSON that can stand in a <script>. "</script" would end the element early, and "<!--" with
    "<script" would prevent "</script" from ending it (HTML standard, section 4.12.1.3)."""
    return json.dumps(document, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _short(value: float) -> float | int | None:
    if isinstance(value, int):
        return value
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None


def runs(findings: Findings) -> Section:
    """The section on the number of runs that a campaign needs."""
    data = findings["power"]
    figures: tuple[ReportFigure, ...] = ()
    if len(data):
        caption = "Runs of each page and protocol that show a change over sites; the line is at the paper's 31."
        finding = alternatives.runs_needed(data, NEEDED[0.05], "5 %")
        arguments = (data, findings.samples.networks)
        figures = (ReportFigure("runs_needed", caption, runs_needed.draw, arguments, finding),)
    return Section("runs", "Runs needed", figures=figures, tables=tables_of(findings, "blocks_needed"))


SECTION = CampaignSection("comparisons", place=70, of=sections)
