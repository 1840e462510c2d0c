"""The contract of the sections of a campaign's report."""

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from operator import itemgetter

from analysis.findings import Findings, submitted
from analysis.report import sections
from analysis.report.section import Section
from base.registry import registered

# The place of the section of films.
FILMS = 90


@dataclass(frozen=True)
class CampaignSection:
    """A section of a campaign's report, or several in a row. `of` takes the campaign's findings and returns the
    sections, none if there is nothing to report. `place` orders the sections of all pages."""

    name: str
    place: int
    of: Callable[[Findings], list[Section]]


def sections_of(findings: Findings, films: Callable[[Findings], Section], pool: Executor) -> list[Section]:
    """The sections of a campaign's report in their order, which `pool` computes: the registered ones, and that of
    `films`."""
    entries = registered(sections, "SECTION").values()
    (of_films,) = submitted([films], findings, pool)
    jobs = zip(entries, submitted([entry.of for entry in entries], findings, pool), strict=True)
    placed = [(FILMS, of_films.result()), *((entry.place, one) for entry, job in jobs for one in job.result())]
    return [section for _, section in sorted(placed, key=itemgetter(0))]
