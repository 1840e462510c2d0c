"""A study: a campaign with a method of its own, options of its own, and a section of the report.

A study is a folder in `studies/` whose `__init__.py` defines `STUDY`, and a line in `studies/__init__.py`. The study's
command, its target of `make` and its section of the report are made from `STUDY`. `STUDY` names the functions that
measure and report (`late`); these are loaded when they are called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from base.errors import Misuse
from base.options import Option
from dataset.plan import Enough, never_enough
from dataset.table import CampaignDocument
from films.policy import ALL_FILMS, KEPT, QUALITIES, FilmPolicy
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
# The options of studies that film their loads.
FILM_OPTIONS = (
    Option("--films", "Films to keep after their metrics are computed.", choices=KEPT, usual=ALL_FILMS.kept),
    Option("--quality", "Quality of the films that are kept.", choices=QUALITIES, usual=ALL_FILMS.quality),
)
# The usual values of the options of all studies, in words, unless a study has others.
RESUMED = "as in the campaign that is resumed; a new one needs it"
USUAL = {"--sites": RESUMED, "--net": RESUMED, "--proto": RESUMED, "--runs": str(RUNS)}


@dataclass(frozen=True)
class Request:
    """The values on the command line of a study; None if a value is missing. `options` are the study's own.

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
        """The browser of the command line, else that of the campaign in `folder`, else the default one."""
        name, *others = self.browser_names()
        if others:
            raise Misuse(f"this study measures one device, not {self.device}; 'make grid' takes several")
        return name

    def browser_names(self, usual_devices: Sequence[str] = (DESKTOP,)) -> list[str]:
        """The browser of the command line on each of its devices, else the browsers of the campaign in `folder`, else
        the default browser on the `usual_devices`. Raises EyelevelError."""
        from browsers.registry import one_browser, require_named_builds

        if self.document:
            require_named_builds(self.document.settings.settings_of_browsers.values(), self.browser)
        if self.browser is None and self.device is None and self.document and self.document.settings.browsers:
            return list(self.document.settings.browsers)
        return on_devices([one_browser(self.browser or DEFAULT_BROWSER)], self.device or usual_devices)

    @property
    def plan_seed(self) -> int:
        """The seed of the command line, else that of the existing campaign, else the default one."""
        return int(self.setting("seed", SEED) if self.seed is None else self.seed)

    @property
    def films(self) -> FilmPolicy:
        """The films to keep: those of FILM_OPTIONS on the command line, else those of the existing campaign, else
        all."""
        begun = FilmPolicy(**(self.document.films if self.document else {}))
        return FilmPolicy(self.options.get("films") or begun.kept, self.options.get("quality") or begun.quality)

    def number_of_runs(self, usual: int) -> int:
        """The number of runs: as many as the command line says, but no fewer than the existing campaign has; `usual` if
        neither gives a number."""
        return max(self.runs or 0, int(self.setting("runs", usual if self.runs is None else 0)))

    def setting(self, name: str, default: Any) -> Any:
        """A setting of the existing campaign; `default` if there is no campaign, or if it lacks the setting."""
        value = getattr(self.document.settings, name) if self.document else None
        return default if value is None else value

    def own_setting(self, name: str, default: Any) -> Any:
        """A setting of the study's own in the existing campaign, or `default`."""
        return self.document.settings.method.get(name, default) if self.document else default

    def names(self, option: str, group: str, default: str | Sequence[str] | None = None) -> str | list[str]:
        """The names that the command line gives for a group (sites, networks, protocols), else those of the existing
        campaign, else `default`. Raises EyelevelError if there are none."""
        names = getattr(self, option) or list(self.setting(group, ())) or default
        if not names:
            raise Misuse(f"Missing option '--{option}'.")
        return names if isinstance(names, str) else list(names)


@dataclass(frozen=True)
class Measurement:
    """A campaign that a study is about to measure.

    `announcement` is printed before the campaign; `summary` returns the lines to print afterwards. `enough` ends
    cells before the planned number of runs (`measure.campaign.engine.measure`). `budget_s`: the time limit for the
    whole campaign, if any.
    """

    campaign: Campaign
    announcement: Sequence[str] = ()
    summary: Callable[[], Sequence[str]] = list
    enough: Enough = never_enough
    budget_s: float | None = None


@dataclass(frozen=True)
class Study:
    """A study.

    `name`: its folder in `studies/`, and the study's name in its campaigns.
    `command`: its command of `eyelevel` and target of `make`; also the folder of its results unless another is named.
    `title`: its line in the list of commands; `help`: the help of its command.
    `options`: its own options, besides those of all studies; `usual`: the default values, in words, of those of all
    studies, where they differ from USUAL.
    `pages`: if it generates pages, returns the page of a name that begins with the study's name
    (`record.page_sources`).
    `chooses_sites`: whether it has the option --sites.
    `decisive`: the options that determine how much a new campaign measures. A long campaign without one of them begins
    only after its user confirms.
    `no_page_times`: why load times of its pages say nothing about the study's results, so that two of its campaigns
    cannot be compared by load times.
    `validates`: whether networks and protocols are validated first, unless the command line says otherwise.
    `campaign`: returns the measurement.
    `section`: makes the study's section of the report.
    """

    name: str
    command: str
    title: str
    help: str
    campaign: Callable[[Request], Measurement]
    section: StudySection
    options: Sequence[Option] = ()
    usual: Mapping[str, str] = field(default_factory=dict)
    chooses_sites: bool = True
    decisive: Sequence[str] = ("sites", "net", "proto")
    pages: PageSource | None = None
    no_page_times: str = ""
    validates: bool = False
