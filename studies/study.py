"""A study: a campaign with a method of its own, options of its own, and a section of the report.

A study is a folder in `studies/` whose `__init__.py` has a `STUDY`, and a line in `studies/__init__.py`. Its command,
its target of `make` and its section of the report are made of that. `STUDY` names the functions that measure and that
report (`late`): they are loaded when they are called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from base.errors import EyelevelError
from base.options import Option
from dataset.plan import Enough, never_enough
from dataset.table import CampaignDocument
from tuning.defaults import DEFAULT_BROWSER
from tuning.devices import DESKTOP, on_devices

if TYPE_CHECKING:
    from analysis.report.section import Section
    from measure.campaign.campaign import Campaign
    from record.generated import GeneratedSite

# Makes a study's section of the report from the campaign's folder; None if there is nothing to show.
StudySection = Callable[[Path], "Section | None"]
PageSource = Callable[[str], "GeneratedSite | None"]

SEED = 1
RUNS, REPEATS = 10, 3


@dataclass(frozen=True)
class Request:
    """The values on the command line of a study; None where it has none. `options` are the study's own.

    `document` is that of the campaign in `folder`, if there is one.
    """

    folder: Path
    sites: str | None = None
    net: str | None = None
    proto: str | None = None
    runs: int | None = None
    seed: int | None = None
    browser: str | None = None
    device: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    document: CampaignDocument | None = None

    @property
    def browser_name(self) -> str:
        """The browser of the command line, or of the campaign in `folder`, or the usual one."""
        name, *others = self.browser_names()
        if others:
            raise EyelevelError(f"this study measures one device, not {self.device}; 'make grid' takes several")
        return name

    def browser_names(self, usual_devices: Sequence[str] = (DESKTOP,)) -> list[str]:
        """The browser of the command line on each of its devices, or those of the campaign in `folder`, or the usual
        one on the `usual_devices`. Raises EyelevelError."""
        if self.browser is None and self.device is None and self.document and self.document.settings.browsers:
            return list(self.document.settings.browsers)
        return on_devices([self.browser or DEFAULT_BROWSER], self.device or usual_devices)

    @property
    def plan_seed(self) -> int:
        """The seed of the command line, or of the campaign that was begun, or the usual one."""
        return int(self.setting("seed", SEED) if self.seed is None else self.seed)

    def number_of_runs(self, usual: int) -> int:
        """How many runs there are to be: as many as the command line says, but no fewer than the campaign that was
        begun has; `usual` ones where neither says any."""
        return max(self.runs or 0, int(self.setting("runs", usual if self.runs is None else 0)))

    def setting(self, name: str, default: Any) -> Any:
        """A setting of the campaign that was begun, or `default` where there is none, or it has none."""
        value = getattr(self.document.settings, name) if self.document else None
        return default if value is None else value

    def own_setting(self, name: str, default: Any) -> Any:
        """A setting of the study's own in the campaign that was begun, or `default`."""
        return self.document.settings.method.get(name, default) if self.document else default

    def names(self, option: str, group: str, default: str | Sequence[str] | None = None) -> str | list[str]:
        """The names that the command line gives for a group (sites, networks, protocols), or the campaign that was
        begun has, or `default`. Raises EyelevelError when there are none."""
        names = getattr(self, option) or list(self.setting(group, ())) or default
        if not names:
            raise EyelevelError(f"Missing option '--{option}'.")
        return names if isinstance(names, str) else list(names)


@dataclass(frozen=True)
class Measurement:
    """A campaign that a study is about to measure.

    `announcement` is printed before, `summary` returns what is printed afterwards. `enough` as in `campaign.measure`.
    `budget_s`: how long all may take, if that has a limit.
    """

    campaign: Campaign
    announcement: Sequence[str] = ()
    summary: Callable[[], Sequence[str]] = list
    enough: Enough = never_enough
    budget_s: float | None = None


@dataclass(frozen=True)
class Study:
    """A study. `name` is its folder in `studies/`, and what its campaigns say that they are of.

    `command`: its command of `eyelevel` and target of `make`; also the folder of its results unless another is named.
    `title`: a line in the list of commands; `help`: of its command. `options`: of its own, beside those of all studies.
    `pages`: returns the page of a name that begins with the study's, if it generates pages (`record.page_sources`).
    `chooses_sites`: whether it has the option --sites. `decisive`: which options decide how much a new campaign
    measures; a long one in which one of them was not given begins only when its user says so. `no_page_times`: why load
    times of its pages say nothing of what it measures, so that two of its campaigns cannot be compared by them.
    `validates`: whether networks and protocols are measured before unless the command line says otherwise. `campaign`:
    what is to be measured. `section` makes the study's section of the report.
    """

    name: str
    command: str
    title: str
    help: str
    campaign: Callable[[Request], Measurement]
    section: StudySection
    options: Sequence[Option] = ()
    chooses_sites: bool = True
    decisive: Sequence[str] = ("sites", "net", "proto")
    pages: PageSource | None = None
    no_page_times: str = ""
    validates: bool = False
