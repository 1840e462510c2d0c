"""The request of `eyelevel answer`: its options, checked before the first load."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analysis import hypotheses
from analysis.answer import require_question
from base.errors import EyelevelError, Misuse
from base.places import ANSWER_PREFIX
from dataset.declaration import HYPOTHESES, kept_hypotheses
from dataset.settings import CampaignSettings
from dataset.table import CampaignDocument
from eyelevel.defaults import ANSWER_BUDGET, ANSWER_NETWORKS, AUTO, SEED
from eyelevel.measuring_options import campaign_name, document_of
from eyelevel.options import with_options
from eyelevel.runs import number_of_runs
from eyelevel.study_command import command_of
from measure.campaign.budget import Budget, read_budget
from measure.campaign.campaign import Campaign
from measure.run.aliases import choose_protocols
from measure.run.setting import Loading
from record.names import require_site_name
from record.recorder.targets import Target, read_targets
from record.site import Site
from tuning import networks, protocols
from tuning.networks import Network
from tuning.settings import choose

QUESTION = hypotheses.DECLARED.with_name("answer.toml")
OVER = "tcp+,quic"


@dataclass(frozen=True)
class Request:
    """The page to answer for, the campaign that answers, and what the campaign may cost.

    `target`: the page, if one was named; `site`: the name of its recording, if known. `folder` is the campaign's
    folder, `document` its `campaign.json` if it has begun, `question` the text of its hypotheses. `runs` is the number
    of runs of each setting, or the maximum if `is_auto`. `is_limited`: whether the budget may end the campaign early.
    Without it, all runs are made: the user gave their number and no budget.
    """

    target: Target | None
    site: str | None
    folder: Path
    document: CampaignDocument | None
    question: str
    runs: int
    is_auto: bool
    is_limited: bool
    networks: Sequence[Network]
    loading: Loading
    budget: Budget

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> "Request":
        """The request that the command's `options` describe. Raises EyelevelError."""
        budget = Budget.of(read_budget(options["budget"] or ANSWER_BUDGET))
        target, site = target_of(options["url"], options["site"]), options["site"]
        folder, document = campaign_of(options["results"], options["name"], target.name if target else site)
        question = text_of_question(folder, document)
        runs, is_auto = runs_of(options["runs"], folder, document)
        first_site = next(iter(document.settings.sites), None) if document else None
        return cls(
            target=target,
            site=site or first_site or site_of_folder(folder),
            folder=folder,
            document=document,
            question=question,
            runs=runs,
            is_auto=is_auto,
            is_limited=is_auto or options["budget"] is not None,
            networks=networks_of(options["net"], document),
            loading=loading_of({name: options[name] for name in ("server_rtts", "think_time")}, document),
            budget=budget,
        )

    def campaign(self, site: Site) -> Campaign:
        """The campaign that measures `site` for this request. Raises EyelevelError."""
        over = choose_protocols(OVER, protocols.load())
        return Campaign(
            self.folder,
            {site.name: site},
            {network.name: network for network in self.networks},
            {protocol.name: protocol for protocol in over},
            self.runs,
            SEED,
            self.loading,
            auto=self.is_auto,
            hypotheses=self.question,
        )


def target_of(url: str | None, site: str | None) -> Target | None:
    """The page to answer for, and the name of its site: `site` if given, otherwise the host's. Raises EyelevelError."""
    if url is None:
        return None
    page = url if "://" in url else f"https://{url}"
    (target,) = read_targets([f"{require_site_name(site)} {page}" if site else page])
    return target


def campaign_of(results: Path, name: str | None, site: str | None) -> tuple[Path, CampaignDocument | None]:
    """The folder of the campaign, and its document if there is one. Raises EyelevelError."""
    if not (site or name):
        raise Misuse("name a page (make answer URL=https://www.gnu.org/) or a site (make answer SITE=gnu.org)")
    folder = results / campaign_name(name or f"{ANSWER_PREFIX}{require_site_name(site or '')}")
    document = document_of(folder, "", command_of)
    if not (site or document or site_of_folder(folder)):
        raise EyelevelError(f"there is no campaign {folder.name} to resume; give URL or SITE")
    settings = document.settings if document else None
    if settings and (
        {site} - {None, *settings.sites} or len(settings.sites) != 1 or list(settings.protocols) != OVER.split(",")
    ):
        raise EyelevelError(
            f"the campaign {folder.name} has other sites or protocols than this answer needs ({OVER}); use another "
            "CAMPAIGN (--campaign)"
        )
    return folder, document


def site_of_folder(folder: Path) -> str | None:
    """The site whose answer would have its campaign in `folder`, by the usual name.

    It is needed when the command was stopped before the campaign began.
    """
    return (
        folder.name.removeprefix(ANSWER_PREFIX) if folder.is_dir() and folder.name.startswith(ANSWER_PREFIX) else None
    )


def text_of_question(folder: Path, document: CampaignDocument | None) -> str:
    """The text of the hypotheses: the ones that the campaign in `folder` declared, or the default ones.

    Raises EyelevelError when the campaign declared none before its first run, or when they are not a question that one
    sentence can answer.
    """
    if not document:
        return hypotheses.read_text(QUESTION)
    text = kept_hypotheses(folder, document)
    if not text:
        raise EyelevelError(
            f"the campaign {folder.name} declared no hypotheses before its first run, so it has no answer; use another "
            "CAMPAIGN (--campaign)"
        )
    require_question(hypotheses.parse(text, folder / HYPOTHESES), folder.name)
    return text


def runs_of(wanted: str | None, folder: Path, document: CampaignDocument | None) -> tuple[int, bool]:
    """The number of runs of each setting, and whether that number is only a maximum."""
    number = number_of_runs(wanted, None, document)
    if not document:
        return number, wanted in (None, AUTO)
    # For a campaign that may stop early, a number is a maximum.
    settings = document.settings
    if wanted == AUTO and not settings.auto:
        raise EyelevelError(
            f"the campaign {folder.name} has a fixed number of runs (RUNS={settings.runs}), so it does not stop by "
            "itself; use a larger RUNS, or another CAMPAIGN"
        )
    if number < (settings.runs or 0):
        raise EyelevelError(
            f"the campaign {folder.name} has RUNS={settings.runs}, not {number}; use RUNS={settings.runs} or more, or "
            "another CAMPAIGN"
        )
    return number, settings.auto


def networks_of(wanted: str | None, document: CampaignDocument | None) -> list[Network]:
    """The networks to measure on: those of the campaign, and those `wanted` in addition. Raises EyelevelError."""
    known = networks.load()
    before = choose("network", list(document.settings.networks), known) if document else []
    chosen = choose("network", wanted or ANSWER_NETWORKS, known) if wanted or not before else []
    return [*before, *(network for network in chosen if network not in before)]


def loading_of(given: Mapping[str, Any], document: CampaignDocument | None) -> Loading:
    """How pages are loaded: as when the campaign began, or as the command line says. Raises EyelevelError."""
    settings = document.settings if document else CampaignSettings()
    return Loading.of(with_options(settings, "answer", given))
