"""Reports of campaigns: their sections, and their page in the packaged browser."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from analysis import hypotheses
from analysis.findings import Findings
from analysis.report.section import ReportFigure, ReportTable, Section, with_parts
from analysis.report.sections.contract import sections_of as sections_of_campaign
from analysis.report.write import write_report
from eyelevel.sections import sections_of
from support.axe import accessible
from support.browser import Browser
from support.figure_layout import draw_nothing


def parts_of_report(findings: Findings, *of_films: ReportFigure) -> list[Section]:
    """The sections of the report on these `findings`, subsections included; `of_films` are the figures of films."""
    with ThreadPoolExecutor(1) as pool:
        return with_parts(sections_of_campaign(findings, lambda _: Section("films", "Films", figures=of_films), pool))


def tables_of_report(findings: Findings) -> list[ReportTable]:
    """The tables of the report on these `findings`."""
    return [table for part in parts_of_report(findings) for table in part.tables]


def accessible_report(browser: Browser, folder: Path) -> list[str]:
    """The faults that axe-core finds in the report of the campaign in `folder` (`support.axe`).

    Its pictures are white, since axe-core ignores pictures.
    """
    with pytest.MonkeyPatch.context() as patch:
        draw_nothing(patch)
        into = write_report(folder, sections_of(folder), hypotheses.load())
    return accessible(browser, (into / "index.html").as_uri())
