"""`eyelevel campaign`: run a campaign, or go on with one, and say what it found."""

from pathlib import Path
from typing import Any

import click

from base.errors import EyelevelError
from dataset.plan import never_enough
from dataset.table import DOCUMENT, CampaignDocument
from eyelevel.arguments import PATH, begin
from eyelevel.measuring_options import (
    MeasuringOptions,
    campaign_name,
    document_of,
    measuring_options,
    unnamed_variables,
)
from eyelevel.options import (
    ALPN_HELP,
    BUDGET_HELP,
    CERTIFICATES_HELP,
    OFF_OR_RECORDED,
    SERVER_RTTS_HELP,
    SHELLS_HELP,
    THINK_TIME_HELP,
    require_known_networks,
    require_known_protocols,
)
from films.policy import KEPT, QUALITIES, FilmPolicy
from measure.campaign.budget import read_budget
from measure.defaults import REPEATS
from replay.shells.registry import all_shells
from tuning.defaults import DEFAULT_BROWSER
from tuning.devices import DESKTOP

RUNS = 31  # as in the paper
AUTO = "auto"
MAX_RUNS = 31  # the last look of the rule
SEED = 1


OPTIONS: list[click.Parameter] = [
    click.Option(["--net"], help="Networks of tuning/networks.toml, or all."),
    click.Option(
        ["--proto"],
        help="Protocols of tuning/protocols.toml, or all; gains are against the first.",
    ),
    click.Option(["--sites"], help="Folders in sites/, demo sites, or all; all recorded ones unless given."),
    click.Option(["--runs"], help=f"Runs of each site, network and protocol ({RUNS}), or auto: as many as are needed."),
    click.Option(["--max-runs"], type=click.IntRange(min=1), help=f"With --runs auto: at most so many ({MAX_RUNS})."),
    click.Option(
        ["--repeatable/--as-recorded"],
        default=None,
        help="Whether pages get the script that makes them ask for the same on every load; they do unless given.",
    ),
    click.Option(
        ["--repeats"], type=click.IntRange(min=0), help=f"How often a run that does not count is repeated ({REPEATS})."
    ),
    click.Option(
        ["--hypotheses"],
        type=PATH,
        help="What is asked, which the campaign keeps before its first run: analysis/hypotheses.toml unless given.",
    ),
    click.Option(["--server-rtts"], help=SERVER_RTTS_HELP),
    click.Option(["--think-time"], type=click.Choice(OFF_OR_RECORDED), help=THINK_TIME_HELP),
    click.Option(["--certificates"], type=click.Choice(OFF_OR_RECORDED), help=CERTIFICATES_HELP),
    click.Option(["--alpn"], type=click.Choice(OFF_OR_RECORDED), help=ALPN_HELP),
    click.Option(["--shells"], type=click.Choice(list(all_shells())), help=SHELLS_HELP),
    click.Option(["--films"], type=click.Choice(KEPT), help="Which films are kept once their metrics are: all."),
    click.Option(["--quality"], type=click.Choice(QUALITIES), help="How they are kept: lossless unless given."),
    click.Option(["--budget"], help=BUDGET_HELP),
    click.Option(
        ["--package"],
        type=PATH,
        help="Go on from this package of a campaign (eyelevel package), if results/ does not have the campaign.",
    ),
    *measuring_options(validates=True, several_browsers=True),
]
# The options that decide how much a new campaign measures.
DECISIVE = ("net", "proto", "sites")


@click.command(params=OPTIONS)
def main(**options: Any) -> None:
    """Measure sites over networks and protocols, and print what was found.

    Values are separated by commas or blanks. A campaign that exists goes on where it was, with the settings
    it was begun with; what is given besides must agree with them or add to them.

    Example: eyelevel campaign --net lte --proto tcp,quic --sites demo-news --runs 3 --campaign try
    """
    from rich.console import Console

    from base.structure import structured
    from eyelevel.commands.package import ENDING
    from eyelevel.study_command import command_of

    require_known_networks(options["net"])
    require_known_protocols(options["proto"])
    budget_s = read_budget(options["budget"]) if options["budget"] else None
    console = Console(highlight=False)
    package: Path | None = options["package"]
    # A package is named after its campaign.
    kept_name = package.resolve().name.removesuffix(ENDING) if package else None
    folder = options["results"] / campaign_name(kept_name if options["name"] is None else options["name"])
    if package:
        from measure.taking_up import take_up

        if take_up(package, folder):
            console.print(f"it goes on from {package}", markup=False, soft_wrap=True)
    original = document_of(folder, "", command_of)
    document = original or CampaignDocument()
    settings, films = document.settings, structured(document.films, FilmPolicy, f"{folder / DOCUMENT}: films")

    def names(option: str, group: str) -> str | list[str]:
        return options[option] or list(getattr(settings, group)) or "all"

    def setting(name: str, usual: Any) -> Any:
        if options[name] is not None:
            return options[name]
        return getattr(settings, name) if original else usual

    # Options are checked before sites are chosen: choosing a demo site generates it.
    runs = options["runs"]
    planned_runs = number_of_runs(runs, options["max_runs"], original)
    begin(f"preparing the campaign {folder.name}")

    from eyelevel.measuring import carry_out, no_announcement
    from measure.campaign.campaign import Campaign
    from measure.run.aliases import choose_protocols
    from measure.run.server_rtts import kept_server_rtts, parse_server_rtts
    from measure.run.setting import Loading
    from record.collection import choose_sites
    from tuning import networks, protocols
    from tuning.defaults import OFF, RECORDED
    from tuning.settings import choose

    declaration = declared_text(options["hypotheses"], folder, original)
    chosen_networks = choose("network", names("net", "networks"), networks.load())
    chosen_protocols = choose_protocols(names("proto", "protocols"), protocols.load())
    first_browser, *further_browsers = chosen_browsers(options["browser"], options["device"], document)
    campaign = Campaign(
        folder=folder,
        sites={site.name: site for site in choose_sites(names("sites", "sites"))},
        networks={network.name: network for network in chosen_networks},
        protocols={protocol.name: protocol for protocol in chosen_protocols},
        runs=planned_runs,
        seed=setting("seed", SEED),
        loading=Loading(
            repeatable=setting("repeatable", True),
            browser=first_browser,
            shells=options["shells"] or document.settings.shells,
            server_rtts=parse_server_rtts(given) if (given := options["server_rtts"]) else kept_server_rtts(settings),
            think_time=setting("think_time", OFF) == RECORDED,
            recorded_alpn=setting("alpn", OFF) == RECORDED,
            recorded_certificates=setting("certificates", OFF) == RECORDED,
        ),
        further_browsers=tuple(further_browsers),
        films=FilmPolicy(options["films"] or films.kept, options["quality"] or films.quality),
        repeats=setting("repeats", REPEATS),
        auto=settings.auto if runs is None else runs == AUTO,
        hypotheses=declaration,
    )
    measuring = MeasuringOptions.take(options)
    announcement = no_announcement
    if campaign.auto and not original:
        from eyelevel.auto_runs import announcement
    carry_out(
        campaign,
        measuring,
        console,
        "campaign",
        enough_runs if campaign.auto else never_enough,
        announcement,
        unnamed_variables(original, options, DECISIVE),
        budget_s,
    )
    from analysis.first_answer import report

    report(folder, console)
    if campaign.auto:
        from analysis.saving import saved_line, saving

        console.print(saved_line(saving(folder, enough_runs(folder))), markup=False, soft_wrap=True)


def chosen_browsers(wanted: str | None, wanted_devices: str | None, document: CampaignDocument) -> list[str]:
    """The names of the browsers that are `wanted`, each on the `wanted_devices`, those that the campaign of `document`
    was begun with first and in its order; unless given, those of the campaign, or the usual one on this machine. Raises
    EyelevelError."""
    from browsers.registry import all_browsers
    from tuning.devices import on_devices
    from tuning.settings import choose

    if wanted is None and wanted_devices is None:
        return list(document.settings.browsers) or [DEFAULT_BROWSER]
    programs = choose("browser", wanted or DEFAULT_BROWSER, {name: name for name in all_browsers()})
    names = on_devices(programs, wanted_devices or DESKTOP)
    return sorted(names, key=lambda name: (*document.settings.browsers, *names).index(name))


def number_of_runs(wanted: str | None, most: int | None, original: CampaignDocument | None) -> int:
    """How many runs of each setting are planned: `wanted`, or `most` when that is auto; unless given, as many as the
    `original` campaign has. Raises EyelevelError."""
    if wanted in (None, AUTO):
        usual = RUNS if wanted is None else MAX_RUNS
        return most or (original.settings.runs if original else None) or usual
    assert wanted
    if not wanted.isdecimal() or not int(wanted):
        raise EyelevelError(f"the number of runs must be 1 or more, or auto, not {wanted!r}")
    return int(wanted)


def declared_text(file: Path | None, folder: Path, original: CampaignDocument | None) -> str:
    """The text of the hypotheses in `file`; unless given, of those that the `original` campaign in `folder` was begun
    with (nothing if with none), or of the default ones for a new campaign. Raises EyelevelError."""
    from analysis import hypotheses
    from dataset.declaration import kept_hypotheses

    if file is None and original:
        return kept_hypotheses(folder, original)
    text = hypotheses.read_text(path := file or hypotheses.DECLARED)
    hypotheses.parse(text, path)
    return text


def enough_runs(folder: Path) -> list[tuple[str, str]]:
    """The sites and networks whose runs suffice, as the analysis says of the campaign's own hypotheses. Raises
    EyelevelError."""
    from analysis import hypotheses
    from analysis import runs as tables
    from analysis.stopping import decided_cells

    campaign = tables.load(folder)
    return decided_cells(campaign, hypotheses.of_campaign(folder, campaign.document))
