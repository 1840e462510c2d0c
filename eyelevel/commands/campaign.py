"""`eyelevel campaign`: run a campaign, or go on with one, and say what it found."""

import shlex
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from analysis import hypotheses
from analysis import runs as tables
from analysis.first_answer import report
from analysis.stopping import decided
from base.errors import EyelevelError
from base.places import RESULTS
from base.privileges import require_root
from eyelevel.options import plain_option, results_option, validate_option
from measure.campaign.campaign import REPEATS, Campaign, measure
from measure.campaign.cluster import Cluster
from measure.campaign.command import campaign_name, going_on
from measure.campaign.progress import Watch
from measure.run.aliases import choose_protocols, distinct
from measure.run.films import KEPT, QUALITIES, FilmPolicy
from measure.table import CampaignDocument, read_document
from measure.validate.record import validate_campaign
from record.shelf import choose_sites
from tuning import networks, protocols
from tuning.settings import choose

RUNS = 31  # as in the paper
AUTO = "auto"
MAX_RUNS = 31  # the last look of the rule
SEED = 1


@click.command()
@click.option("--net", help="Networks of tuning/networks.toml, or all.")
@click.option("--proto", help="Protocols of tuning/protocols.toml, or all; gains are against the first.")
@click.option("--sites", help="Folders in sites/, demo sites, or all; all recorded ones unless given.")
@click.option("--runs", help=f"Runs of each site, network and protocol ({RUNS}), or auto: as many as are needed.")
@click.option("--max-runs", type=click.IntRange(min=1), help=f"With --runs auto: at most so many ({MAX_RUNS}).")
@click.option("--seed", type=int, help=f"What the order of the runs is drawn from ({SEED}).")
@click.option(
    "--repeatable/--as-recorded",
    default=None,
    help="Whether pages get the script that makes them ask for the same on every load; they do unless told.",
)
@click.option(
    "--repeats", type=click.IntRange(min=0), help=f"How often a run that does not count is repeated ({REPEATS})."
)
@click.option("--films", type=click.Choice(KEPT), help="Which films are kept once their metrics are: all unless given.")
@click.option("--quality", type=click.Choice(QUALITIES), help="How they are kept: lossless unless given.")
@click.option("--dask", help="Measure on the workers of a Dask scheduler, as in tcp://scheduler:8786.")
@click.option("--trust-workers", is_flag=True, help="Do not hold a cluster's workers to 'make validate' before.")
@validate_option
@plain_option
@click.option("--campaign", "name", help="The folder in results/; the time of day unless given.")
@results_option
def main(
    net: str | None,
    proto: str | None,
    sites: str | None,
    runs: str | None,
    max_runs: int | None,
    seed: int | None,
    repeatable: bool | None,
    repeats: int | None,
    films: str | None,
    quality: str | None,
    dask: str | None,
    trust_workers: bool,
    validate: bool,
    plain: bool,
    name: str | None,
    results: Path,
) -> None:
    """Measure sites over networks and protocols, and print what was found.

    Values are separated by commas or blanks. A campaign that exists goes on where it was, with the settings
    it was begun with; what is given besides must agree with them or add to them.

    Example: eyelevel campaign --net lte --proto tcp,quic --sites demo-news --runs 3 --campaign try
    """
    folder = results / campaign_name(name)
    document = read_document(folder) or CampaignDocument({})
    if study := document.study_name:
        raise EyelevelError(f"{folder.name} is a {study}; go on with it by: make {study} CAMPAIGN={name}")
    begun, kept = document.settings, FilmPolicy(**document.films)
    chosen_networks = choose("network", net or list(begun.get("networks", ())) or "all", networks.load())
    chosen_protocols = choose_protocols(proto or list(begun.get("protocols", ())) or "all", protocols.load())
    campaign = Campaign(
        folder=folder,
        sites={site.name: site for site in choose_sites(sites or list(begun.get("sites", ())) or "all")},
        networks={network.name: network for network in chosen_networks},
        protocols={protocol.name: protocol for protocol in chosen_protocols},
        runs=number_of_runs(runs, max_runs, begun),
        seed=begun.get("seed", SEED) if seed is None else seed,
        repeatable=begun.get("repeatable", True) if repeatable is None else repeatable,
        films=FilmPolicy(films or kept.kept, quality or kept.quality),
        repeats=begun.get("repeats", REPEATS) if repeats is None else repeats,
        auto=begun.get("auto", False) if runs is None else runs == AUTO,
    )
    require_root("measuring")
    console = Console(highlight=False)
    with going_on(folder, again(folder)):
        if validate and not dask and (checks := validate_campaign(folder, chosen_networks, distinct(chosen_protocols))):
            console.print(f"networks and protocols are as configured: all {len(checks)} checks passed")
        workers = Cluster(dask, campaign, validated=not trust_workers) if dask else None
        measure(campaign, partial(Watch, console, plain=plain), workers, enough_runs if campaign.auto else None)
    report(folder, console)


def again(folder: Path) -> str:
    """The command that goes on with the campaign in `folder`."""
    if folder.parent == RESULTS:
        return f"make campaign CAMPAIGN={shlex.quote(folder.name)}"
    return shlex.join(["eyelevel", "campaign", "--campaign", folder.name, "--results", str(folder.parent)])


def number_of_runs(wanted: str | None, most: int | None, begun: Mapping[str, Any]) -> int:
    """How many runs of each setting are planned: `wanted`, or `most` when that is auto. Raises EyelevelError."""
    if wanted is None:
        return int(most or begun.get("runs", RUNS))
    if wanted == AUTO:
        return int(most or begun.get("runs", MAX_RUNS))
    if not wanted.isdecimal() or not int(wanted):
        raise EyelevelError(f"the number of runs must be 1 or more, or auto, not {wanted!r}")
    return int(wanted)


def enough_runs(folder: Path) -> list[tuple[str, str]]:
    """The sites and networks whose runs suffice, as the analysis says. Raises EyelevelError."""
    return decided(tables.load(folder), hypotheses.load())
