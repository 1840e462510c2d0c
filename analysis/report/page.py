"""The report's page: one HTML file that needs nothing beside it."""

import base64
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import jinja2
import pandas as pd
from markupsafe import Markup

from analysis.balance import place_test
from analysis.findings import Findings
from analysis.hypotheses import origin_sentence
from analysis.paper.claims import balance_of
from analysis.report import sentences
from analysis.report.conditions import lane_facts
from analysis.report.film_selection import FilmSelection
from analysis.report.latex import family_latex
from analysis.report.level_ground import level_ground
from analysis.report.question import answer, question, success
from analysis.report.run_files import Links
from analysis.report.section import ReportFigure, ReportTable, Section
from analysis.report.tables import FORMS
from analysis.report.warnings import of_balance
from analysis.runs import CampaignTable
from analysis.statistics.hypotheses import Hypotheses, Pair
from analysis.statistics.samples import CELL
from analysis.text import label, label_with_unit, level, moment, pair_label, unit
from dataset.table import CampaignDocument

HERE = Path(__file__).parent
# Tables of a campaign that are open on the page; those of studies are, if they have at most this many rows.
OPEN_TABLES = frozenset(
    (
        "milestones",
        "campaign_changes",
        "confirmatory",
        "success",
        "mean_gains",
        "claims",
        "table1_protocols",
        "table2_networks",
    )
)
OPEN_ROWS = 40
# Tables of more columns are printed on pages of their own, across.
BROAD_COLUMNS = 12
# Significant digits of the numbers in the page's table of all comparisons.
DIGITS = 4


@dataclass(frozen=True)
class Contents:
    """The contents of a page: figures and tables by the parts of the page, the sections of studies, the versions of the
    libraries that made the report, and a campaign's own sections (`sections.contract`)."""

    figures: Mapping[str, list[ReportFigure]]
    tables: Mapping[str, list[ReportTable]]
    sections: Sequence[Section]
    versions: Mapping[str, str]
    own_sections: Sequence[Section] = ()

    @property
    def all_sections(self) -> list[Section]:
        """The campaign's own sections, then those of studies."""
        return [*self.own_sections, *self.sections]

    @property
    def all_figures(self) -> list[ReportFigure]:
        """All figures, those of studies included."""
        return list(chain(*self.figures.values(), *(section.figures for section in self.all_sections)))

    @property
    def all_tables(self) -> list[ReportTable]:
        """All tables, those of studies included."""
        return list(chain(*self.tables.values(), *(section.tables for section in self.all_sections)))

    def families(self, declared: Hypotheses) -> dict[str, str]:
        """Name of a table → the part of it that is about the `declared` hypotheses, as LaTeX for two columns."""
        of_sections = (section.tables for section in self.own_sections)
        parts = {table.name: family_latex(table, declared) for table in chain(*self.tables.values(), *of_sections)}
        return {name: part for name, part in parts.items() if part}


def campaign_page(
    findings: Findings,
    films: FilmSelection,
    waterfalls: Mapping[str, str],
    contents: Contents,
    figures: Path,
    links: Links,
) -> str:
    """The page of a campaign as HTML; `waterfalls` are the folders and titles of those beside it, `figures` is the
    folder of the PNG files, and `links` makes those to files of runs."""
    template = environment(figures, contents.all_sections, links).get_template("page.html.j2")
    return template.render(
        **page_basics(findings.campaign.document, contents),
        findings=findings,
        scope=sentences.scope(findings),
        question=question(findings),
        answer=answer(findings),
        success=success(findings["success_rates"]),
        level_ground=level_ground(findings.campaign, findings.declared.family),
        own_sections=contents.own_sections,
        headlines=sentences.headlines(findings),
        agreement=sentences.paper_agreement(findings),
        claims=balance_of(findings["claims"], len(findings.campaign.valid), len(findings.samples.sites)),
        warnings=sentences.warnings(findings),
        is_balanced=not of_balance(findings["pair_balance"], place_test(findings.campaign)),
        families=contents.families(findings.declared),
        films=films,
        waterfalls=waterfalls,
        explorer=Markup(explorer(findings)),
    )


def study_page(campaign: CampaignTable, contents: Contents, figures: Path, links: Links) -> str:
    """The page of a study's campaign, or of one without films, as HTML; its results are in the sections of studies."""
    template = environment(figures, contents.sections, links).get_template("study.html.j2")
    basics = page_basics(campaign.document, contents)
    return template.render(
        **basics, name=campaign.name, filmed=campaign.settings.filmed, run_files=links.table(campaign)
    )


def environment(figures: Path, sections: Sequence[Section], links: Links | None = None) -> jinja2.Environment:
    """The environment in which the templates of this folder are rendered; `figures` is the folder of the PNG files, and
    `links` makes the links to files of runs. Without it, a page shows none."""
    templates = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    templates.filters |= {
        "picture": lambda figure: _data_url("image/png", (figures / f"{figure.name}.png").read_bytes()),
        "film": partial(_data_url, "video/webm"),
        "label": label,
        "unit": unit,
        "cells": cells,
        "moment": moment,
        "level": level,
        "origin": origin_sentence,
        "inline": inline,
        "links": links or (lambda _: []),
    }
    of_studies = [table.name for section in sections for table in section.tables if len(table.texts) <= OPEN_ROWS]
    templates.tests["open"] = lambda table: table.name in OPEN_TABLES.union(of_studies)
    return templates


def page_basics(document: CampaignDocument, contents: Contents) -> dict[str, Any]:
    """The values that the pages of campaigns and of studies both show."""
    return {
        "figures": {**contents.figures, **{section.name: section.figures for section in contents.all_sections}},
        "tables": {**contents.tables, **{section.name: section.tables for section in contents.all_sections}},
        "sections": contents.sections,
        "versions": contents.versions,
        "campaign_versions": document.versions,
        "machine": {**document.machine, **lane_facts(document)},
        "settings": document.settings,
        "browsers": {document.settings.first_browser: document.settings.browser, **document.settings.further_browsers},
        "begun_at": document.begun_at,
        "broad_columns": BROAD_COLUMNS,
        "css": Markup((HERE / "page.css").read_text()),
        "js": Markup((HERE / "page.js").read_text()),
    }


def inline(svg: str) -> Markup:
    """A drawing as a part of the page: without the XML declaration, which only a file may have."""
    return Markup(svg[svg.index("<svg") :])


def cells(table: pd.DataFrame) -> list[list[str]]:
    """The rows of a table of texts."""
    return [[str(value) for value in row] for row in table.itertuples(index=False)]


def explorer(findings: Findings) -> str:
    """All comparisons as JSON for the page's script: names once, then a row of indices and numbers for each."""
    samples, pairs = findings.samples, findings.hypotheses.comparisons
    numbers = dict(FORMS["comparisons"]["columns"])
    # A campaign without any pair has no column of most of them.
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
        "shares": [
            list(numbers).index(name)
            for name in ("gain", "gain_low", "gain_high", "ratio_gain", "ratio_low", "ratio_high")
        ],
        "rows": list(zip(*columns, strict=True)),
    }
    return script_json(document)


def script_json(document: Any) -> str:
    """`document` as JSON that can stand in a <script>, which "</script" would end, and which "<!--" with "<script"
    would make go on behind its end (HTML standard, section 4.12.1.3)."""
    return json.dumps(document, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


def _short(value: float) -> float | int | None:
    if isinstance(value, int):
        return value
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None


def _data_url(kind: str, data: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"
