"""Writing the report of a campaign, of pages or of a study: its pages, figures and tables."""

import re
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from os import sched_getaffinity
from pathlib import Path

import pandas as pd

from analysis.analyses import analyse
from analysis.findings import Findings
from analysis.report.campaign_pages import campaign_pages
from analysis.report.latex import family_latex, latex
from analysis.report.page import study_page
from analysis.report.run_files import Links
from analysis.report.section import ANSWER, ReportTable, Section, with_parts
from analysis.report.sections.contract import sections_of
from analysis.report.sections.diagnostics import exclusions_of_study
from analysis.report.sections.films import films_section
from analysis.report.sections.measured import measured_of_study
from analysis.runs import CampaignTable, load, plain_texts, typed
from analysis.statistics.hypotheses import Hypotheses
from base.errors import EyelevelError
from base.files import replacing_folder, require_replaceable, require_writable
from base.ownership import give_to_caller

REPORT, FIGURES = "report", "figures"
# A file that every report has, and hardly any other folder.
PARQUET = "runs.parquet"
# Matches the beginning of a text that a spreadsheet would treat as a formula; a number with a sign does not match.
FORMULA = re.compile(r"[=@\t\r]|[+-](?![0-9.]*$)")


def write_report(
    folder: Path,
    sections: Sequence[Section],
    declaration: Hypotheses,
    site: str | None = None,
    into: Path | None = None,
) -> Path:
    """Write the report of the campaign in `folder` into that folder, or to `into`, and replace an older one; returns
    its path.

    `sections`: the sections of the campaign's studies.
    `site`: the site whose films to show; unless given, the site with the largest disagreement. Raises EyelevelError.
    """
    return report_and_findings(folder, sections, declaration, site, into)[0]


@plain_texts()
def report_and_findings(
    folder: Path, sections: Sequence[Section], declaration: Hypotheses, site: str | None, into: Path | None
) -> tuple[Path, Findings | None]:
    """As `write_report`; also returns the findings of the campaign, None for a study with a method of its own."""
    campaign = load(folder)
    known_by = PARQUET if into else "*"
    into = _place(folder, into)
    links = Links(folder, into)
    with workers() as pool, replacing_folder(into, known_by) as new:
        tables = new / "tables"
        tables.mkdir()
        findings = analyse(campaign, declaration, pool) if has_results(campaign) else None
        if findings:
            films = partial(films_section, site=site, waterfalls=new / "waterfalls")
            own_sections = sections_of(findings, films, pool)
        else:
            own_sections = [measured_of_study(campaign), exclusions_of_study(campaign)]
        parts = with_parts([*own_sections, *sections])
        # The tables are written while the workers draw.
        with drawing(parts, new / FIGURES, pool) as pictures:
            families = write_tables(
                [table for part in parts for table in part.tables], tables, findings.declared if findings else None
            )
            typed(campaign.runs).to_parquet(new / PARQUET, index=False)
            if findings:
                without_formulas(findings.comparisons).to_csv(tables / "comparisons.csv", index=False)
        if findings:
            pages = campaign_pages(findings, [*own_sections, *sections], families, pictures, links)
        else:
            pages = {ANSWER: study_page(campaign, own_sections, sections, pictures, links)}
        for name, html in pages.items():
            (new / name).write_text(html)
    give_to_caller(into)
    return into, findings


@plain_texts()
def write_figures(folder: Path, sections: Sequence[Section], declaration: Hypotheses, site: str | None = None) -> Path:
    """Write only the figures of the campaign in `folder`, to the same place as its report would; returns the path."""
    campaign = load(folder)
    into = _place(folder, None) / FIGURES
    with workers() as pool, replacing_folder(into) as new:
        if has_results(campaign):
            findings = analyse(campaign, declaration, pool)
            films = partial(films_section, site=site, waterfalls=None)
            sections = [*sections_of(findings, films, pool), *sections]
        with drawing(with_parts(sections), new, pool):
            pass
    give_to_caller(into.parent)
    return into


def has_results(campaign: CampaignTable) -> bool:
    """Whether the campaign has results besides those of its studies."""
    return campaign.settings.filmed and not campaign.document.study_name


def _place(folder: Path, into: Path | None) -> Path:
    """The path for the report of the campaign in `folder`. Raises EyelevelError if it cannot be written. This is
    checked first, since an analysis takes a while."""
    if into is None:
        require_writable(folder, "--into of 'eyelevel report' (INTO of make) names another folder for the report")
        return folder / REPORT
    if folder.resolve().is_relative_to(into.resolve()):
        raise EyelevelError(f"{into} has the campaign itself in it; choose another folder for its report")
    require_replaceable(into, "choose another folder for the report")
    return into


@contextmanager
def workers() -> Iterator[Executor]:
    """A process for each core, until the end of the `with` block."""
    # Forked processes have all libraries loaded, and the options of pandas.
    with ProcessPoolExecutor(len(sched_getaffinity(0)), mp_context=get_context("fork")) as pool:
        yield pool


@contextmanager
def drawing(sections: Sequence[Section], folder: Path, pool: Executor) -> Iterator[dict[str, str]]:
    """Draw all figures of `sections` into `folder`, and write their drawings as SVG; all are there at the end of the
    `with` block. So are then the figures' names and URLs for pages in the dictionary that is yielded."""
    folder.mkdir(exist_ok=True)
    jobs = {figure.name: pool.submit(figure.write, folder) for section in sections for figure in section.figures}
    pictures: dict[str, str] = {}
    for picture in [picture for section in sections for picture in section.drawings]:
        (folder / f"{picture.name}.svg").write_text(picture.svg)
    yield pictures
    pictures |= {name: job.result() for name, job in jobs.items()}


def write_tables(tables: Sequence[ReportTable], folder: Path, declared: Hypotheses | None = None) -> set[str]:
    """Write each table that is not empty as CSV and LaTeX. If a table has a part on the `declared` hypotheses, write
    that part as LaTeX for two columns, too. Returns the names of the tables that have such a part."""
    tables = [table for table in tables if len(table.texts)]
    families = {table.name: family_latex(table, declared) for table in tables} if declared else {}
    for table in tables:
        without_formulas(table.data).to_csv(folder / f"{table.name}.csv", index=False)
        (folder / f"{table.name}.tex").write_text(latex(table))
        if family := families.get(table.name):
            (folder / f"{table.name}_family.tex").write_text(family)
    return {name for name, family in families.items() if family}


def without_formulas(table: pd.DataFrame) -> pd.DataFrame:
    """`table` with an apostrophe in front of each text that a spreadsheet would compute; such a text may be a name in
    another person's campaign."""
    return table.map(lambda value: f"'{value}" if isinstance(value, str) and FORMULA.match(value) else value)
