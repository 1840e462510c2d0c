"""`eyelevel campaign`: run a campaign, or resume one, and print its results."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from base.terminal import print_line
from dataset.plan import never_enough
from dataset.settings import CampaignSettings
from dataset.table import DOCUMENT, CampaignDocument, read_document
from eyelevel.arguments import begin
from eyelevel.defaults import AUTO, SEED
from eyelevel.measuring_options import (
    MeasuringOptions,
    campaign_name,
    document_of,
    unnamed_variables,
)
from eyelevel.names import require_known_networks, require_known_protocols
from eyelevel.next_step import after_campaign, continuation, suggest
from eyelevel.options import parameters_of, with_options
from eyelevel.runs import enough_runs, number_of_runs
from films.policy import FilmPolicy
from measure.campaign.budget import read_budget
from tuning.defaults import DEFAULT_BROWSER, REPEATS
from tuning.devices import DESKTOP

if TYPE_CHECKING:
    from rich.console import Console

    from measure.campaign.campaign import Campaign

# The options that decide how long a new campaign takes.
DECISIVE = ("net", "proto", "sites")


@click.command(params=parameters_of("campaign"))
def main(**options: Any) -> None:
    """Measure sites over networks and protocols, and print the results.

    Separate values by commas or spaces. An existing campaign is resumed with its settings; the options that you give
    must agree with them or add to them.

    Example: eyelevel campaign --net lte --proto tcp,quic --sites demo-news --runs 3 --campaign first
    """
    from rich.console import Console

    console = Console(highlight=False)
    folder, is_auto = measured(options, console)
    from analysis.report.first_answer import report

    report(folder, console)
    if is_auto:
        from analysis.stopping import saved_line, saving

        print_line(console, saved_line(saving(folder, enough_runs(folder))))
    suggest(after_campaign(folder))


def measured(options: dict[str, Any], console: Console, again: str = "") -> tuple[Path, bool]:
    """Measure, or resume, the campaign that the command's `options` describe; return its folder, and whether it ends
    when it has decided (`RUNS=auto`).

    `again`: the command line that resumes it, if that is not `make campaign`. Raises EyelevelError.
    """
    from dataset.package import ENDING
    from eyelevel.study_command import command_of

    require_known_networks(options["net"])
    require_known_protocols(options["proto"])
    budget_s = read_budget(options["budget"]) if options["budget"] else None
    package: Path | None = options["package"]
    # A package is named after its campaign.
    kept_name = package.resolve().name.removesuffix(ENDING) if package else None
    folder: Path = options["results"] / campaign_name(kept_name if options["name"] is None else options["name"])
    if package:
        from browsers.registry import require_named_builds
        from measure.campaign.resuming import resume_from_package

        in_package = read_document(package) or CampaignDocument()
        require_named_builds(in_package.settings.settings_of_browsers.values(), options["browser"])
        if resume_from_package(package, folder):
            print_line(console, f"resumed from {package}")
    original = document_of(folder, "", command_of)
    # Options are checked before sites are chosen: choosing a demo site generates it.
    runs = number_of_runs(options["runs"], options["max_runs"], original)
    begin(f"preparing the campaign {folder.name}")

    from eyelevel.measuring import carry_out, no_announcement

    campaign = planned_campaign(options, folder, original, runs)
    again, unnamed = again or continuation("campaign", folder), unnamed_variables(original, options, DECISIVE)
    how = MeasuringOptions.take(options, again=again, unnamed=unnamed, budget_s=budget_s)
    enough = enough_runs if campaign.auto else never_enough
    carry_out(campaign, how, console, enough, no_announcement if original else announcement)
    return folder, campaign.auto


def announcement(campaign: Campaign) -> list[str]:
    """The lines to print before the new `campaign` (`eyelevel.announcement`). Raises EyelevelError."""
    # Its libraries take a second to load, and many campaigns are refused or left before it.
    from eyelevel.announcement import announcement

    return announcement(campaign)


def planned_campaign(
    options: Mapping[str, Any], folder: Path, original: CampaignDocument | None, runs: int
) -> Campaign:
    """The campaign in `folder`: as the `original` was begun, plus the options of the command line. Raises
    EyelevelError."""
    from base.structure import structured
    from measure.campaign.campaign import Campaign
    from measure.run.aliases import choose_protocols
    from measure.run.setting import Loading
    from record.collection import choose_sites
    from tuning import networks, protocols
    from tuning.settings import choose

    document = original or CampaignDocument()
    begun = original.settings if original else CampaignSettings(seed=SEED, repeats=REPEATS)
    settings = with_options(begun, "campaign", options)
    films = structured(document.films, FilmPolicy, f"{folder / DOCUMENT}: films")

    def names(option: str, group: str) -> str | list[str]:
        return options[option] or list(getattr(begun, group)) or "all"

    declaration = declared_text(options["hypotheses"], folder, original)
    chosen_networks = choose("network", names("net", "networks"), networks.load())
    chosen_protocols = choose_protocols(names("proto", "protocols"), protocols.load())
    browser, *further_browsers = chosen_browsers(options["browser"], options["device"], document)
    loading = Loading.of(settings, browser)
    return Campaign(
        folder=folder,
        sites={site.name: site for site in choose_sites(names("sites", "sites"))},
        networks={network.name: network for network in chosen_networks},
        protocols={protocol.name: protocol for protocol in chosen_protocols},
        runs=runs,
        seed=settings.seed or SEED,
        loading=loading,
        further_browsers=tuple(further_browsers),
        films=FilmPolicy(options["films"] or films.kept, options["quality"] or films.quality),
        repeats=settings.repeats,
        auto=begun.auto if options["runs"] is None else options["runs"] == AUTO,
        hypotheses=declaration,
    )


def chosen_browsers(wanted: str | None, wanted_devices: str | None, document: CampaignDocument) -> list[str]:
    """The names of the `wanted` browsers, each on the `wanted_devices`.

    Browsers that the campaign of `document` already has come first, in its order. If no browsers are given, they are
    the campaign's, or the default browser on this machine. Raises EyelevelError.
    """
    from browsers import registry
    from tuning.devices import on_devices

    registry.require_named_builds(document.settings.settings_of_browsers.values(), wanted)
    if wanted is None and wanted_devices is None:
        return list(document.settings.browsers) or [DEFAULT_BROWSER]
    names = on_devices(registry.chosen_browsers(wanted or DEFAULT_BROWSER), wanted_devices or DESKTOP)
    return sorted(names, key=lambda name: (*document.settings.browsers, *names).index(name))


def declared_text(file: Path | None, folder: Path, original: CampaignDocument | None) -> str:
    """The text of the hypotheses in `file`.

    If no file is given, a campaign that has begun keeps the text of the `original` in `folder` (empty if it had none),
    and a new campaign gets the default hypotheses. Raises EyelevelError.
    """
    from analysis import hypotheses
    from dataset.declaration import kept_hypotheses

    if file is None and original:
        return kept_hypotheses(folder, original)
    text = hypotheses.read_text(path := file or hypotheses.DECLARED)
    hypotheses.parse(text, path)
    return text
