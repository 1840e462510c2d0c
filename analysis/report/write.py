"""Writing the report of a campaign, of pages or of a study: its page, figures and tables."""

import platform
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from importlib.metadata import version
from multiprocessing import get_context
from os import sched_getaffinity
from pathlib import Path

import pandas as pd

from analysis.analyses import analyse
from analysis.report.figures import campaign_figures
from analysis.report.film_selection import select_films
from analysis.report.latex import latex
from analysis.report.page import Contents, campaign_page, study_page
from analysis.report.run_files import Links
from analysis.report.section import ReportFigure, ReportTable, Section
from analysis.report.sections.contract import sections_of
from analysis.report.tables import campaign_tables, study_tables
from analysis.runs import load, typed
from analysis.statistics.hypotheses import Hypotheses
from base.errors import EyelevelError
from base.files import replacing_folder, require_replaceable, require_writable
from base.ownership import give_to_caller

REPORT, FIGURES = "report", "figures"
# A file that every report has, and hardly any other folder.
PARQUET = "runs.parquet"
# How a text begins that a spreadsheet takes for a formula; numbers with a sign are none.
FORMULA = re.compile(r"[=@\t\r]|[+-](?![0-9.]+$)")
LIBRARIES = ("numpy", "scipy", "pandas", "statsmodels", "matplotlib", "pyarrow")


def write_report(
    folder: Path,
    sections: Sequence[Section],
    declaration: Hypotheses,
    site: str | None = None,
    into: Path | None = None,
) -> Path:
    """Write the report of the campaign in `folder` into that folder, or to `into`, in place of an older one; returns
    where.

    `sections`: those of its studies.
    `site`: whose films to show, instead of those of the site with the largest disagreement. Raises EyelevelError.
    """
    campaign = load(folder)
    known_by = PARQUET if into else "*"
    into = _place(folder, into)
    links = Links(folder, into)
    with workers() as pool, replacing_folder(into, known_by) as new:
        (new / "tables").mkdir()
        if not campaign.document.study_name and campaign.settings.filmed:
            findings = analyse(campaign, declaration, pool)
            films = select_films(findings, site)
            figures = campaign_figures(findings, films.strips)
            of_campaign = tuple(sections_of(findings, pool))
            contents = Contents(figures, campaign_tables(findings), sections, library_versions(), of_campaign)
            draw(contents.all_figures, new / FIGURES, pool)
            waterfalls: Mapping[str, str] = {}
            if films.strips:
                from analysis.report.waterfall import write_waterfalls

                waterfalls, missing = write_waterfalls(films.strips, folder, new / "waterfalls")
                films.missing.extend(missing)
            html = campaign_page(findings, films, waterfalls, contents, new / FIGURES, links)
            write_families(contents.families(findings.declared), new / "tables")
            without_formulas(findings.comparisons).to_csv(new / "tables" / "comparisons.csv", index=False)
        else:
            contents = Contents({}, study_tables(campaign), sections, library_versions())
            draw(contents.all_figures, new / FIGURES, pool)
            html = study_page(campaign, contents, new / FIGURES, links)
        write_drawings(contents.all_sections, new / FIGURES)
        write_tables(contents.all_tables, new / "tables")
        typed(campaign.runs).to_parquet(new / PARQUET, index=False)
        (new / "index.html").write_text(html)
    give_to_caller(into)
    return into


def write_figures(folder: Path, sections: Sequence[Section], declaration: Hypotheses, site: str | None = None) -> Path:
    """Write the figures of the campaign in `folder` alone, to where its report has them; returns where."""
    campaign = load(folder)
    into = _place(folder, None) / FIGURES
    with workers() as pool, replacing_folder(into) as new:
        figures: Mapping[str, list[ReportFigure]] = {}
        if not campaign.document.study_name and campaign.settings.filmed:
            findings = analyse(campaign, declaration, pool)
            figures = campaign_figures(findings, select_films(findings, site, playable=False).strips)
            sections = [*sections_of(findings, pool), *sections]
        draw(Contents(figures, {}, sections, {}).all_figures, new, pool)
        write_drawings(sections, new)
    give_to_caller(into.parent)
    return into


def _place(folder: Path, into: Path | None) -> Path:
    """Where the report of the campaign in `folder` is to be. Raises EyelevelError where it cannot be written: at once,
    since an analysis takes a while."""
    if into is None:
        require_writable(folder, "--into of 'eyelevel report' (INTO of make) names another folder for the report")
        return folder / REPORT
    if folder.resolve().is_relative_to(into.resolve()):
        raise EyelevelError(f"{into} has the campaign itself in it; choose another folder for its report")
    require_replaceable(into, "choose another folder for the report")
    return into


def library_versions() -> dict[str, str]:
    """The versions of Python and of the libraries that compute and draw a report."""
    return {name: version(name) for name in LIBRARIES} | {"python": platform.python_version()}


@contextmanager
def workers() -> Iterator[Executor]:
    """A process for each core, until the end of the block."""
    # Forked processes have all libraries loaded.
    with ProcessPoolExecutor(len(sched_getaffinity(0)), mp_context=get_context("fork")) as pool:
        yield pool


def draw(figures: Sequence[ReportFigure], folder: Path, pool: Executor) -> None:
    """Draw all `figures` into `folder`."""
    folder.mkdir(exist_ok=True)
    for job in [pool.submit(figure.write, folder) for figure in figures]:
        job.result()


def write_drawings(sections: Sequence[Section], folder: Path) -> None:
    """Write all drawings of `sections` as SVG."""
    for section in sections:
        for drawing in section.drawings:
            (folder / f"{drawing.name}.svg").write_text(drawing.svg)


def write_tables(tables: Sequence[ReportTable], folder: Path) -> None:
    """Write each table as CSV and LaTeX."""
    for table in tables:
        without_formulas(table.data).to_csv(folder / f"{table.name}.csv", index=False)
        (folder / f"{table.name}.tex").write_text(latex(table))


def without_formulas(table: pd.DataFrame) -> pd.DataFrame:
    """`table`, with an apostrophe in front of each text that a spreadsheet would compute: a campaign of others may have
    such a name."""
    return table.map(lambda value: f"'{value}" if isinstance(value, str) and FORMULA.match(value) else value)


def write_families(families: Mapping[str, str], folder: Path) -> None:
    """Write the parts of tables (name → LaTeX) that are about the declared hypotheses."""
    for name, text in families.items():
        (folder / f"{name}_family.tex").write_text(text)
