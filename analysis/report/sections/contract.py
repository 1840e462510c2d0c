"""The contract of sections of a campaign's report."""

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from operator import itemgetter

from analysis.findings import Findings
from analysis.report import sections
from analysis.report.section import Section
from base.registry import registered

# The place of the films.
FILMS = 90


@dataclass(frozen=True)
class CampaignSection:
    """A section on the page of a campaign, or several that follow each other. `of` analyses the campaign (its findings)
    and returns them: none where there is nothing to say. `place` is where they stand among the others."""

    name: str
    place: int
    of: Callable[[Findings], list[Section]]


def sections_of(findings: Findings, films: Section, pool: Executor) -> list[Section]:
    """The sections of a campaign's page in their order: those that are registered, which `pool` computes, and its
    `films`."""
    jobs = [(entry.place, pool.submit(entry.of, findings)) for entry in registered(sections, "SECTION").values()]
    placed = [(FILMS, films), *((place, section) for place, job in jobs for section in job.result())]
    return [section for _, section in sorted(placed, key=itemgetter(0))]
