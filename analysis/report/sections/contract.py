"""The contract of sections of a campaign's report."""

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Executor
from dataclasses import dataclass

from analysis.findings import Findings
from analysis.report import sections
from analysis.report.section import Section
from base.registry import registered


@dataclass(frozen=True)
class CampaignSection:
    """A section on the page of a campaign. `of` analyses the campaign (its findings) and returns the section, or None
    where there is nothing to say. `place` is where it stands among the others."""

    name: str
    place: int
    of: Callable[[Findings], Section | None]


def sections_of(findings: Findings, pool: Executor) -> Iterator[Section]:
    """The sections that the campaign has, in their order; `pool` analyses it."""
    registry = _registry()
    names = sorted(registry, key=lambda name: registry[name].place)
    for job in [pool.submit(_section, name, findings) for name in names]:
        if section := job.result():
            yield section


def _section(name: str, findings: Findings) -> Section | None:
    return _registry()[name].of(findings)


def _registry() -> Mapping[str, CampaignSection]:
    return registered(sections, "SECTION")
