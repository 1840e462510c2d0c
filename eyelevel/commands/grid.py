"""`eyelevel grid`: page load times over a grid of generated pages and networks."""

import shlex
import time
from functools import partial
from itertools import product
from pathlib import Path

import click
from rich.console import Console

from base.errors import EyelevelError
from base.places import RESULTS
from base.privileges import require_root
from eyelevel.options import plain_option, results_option, validate_option
from measure.campaign.campaign import measure
from measure.campaign.command import campaign_name, going_on
from measure.campaign.progress import Watch
from measure.run.aliases import choose_protocols, distinct
from measure.table import CampaignDocument, read_document, read_rows
from measure.validate.record import validate_campaign
from record.grid import page_named, read_size
from studies.grid.measure import SEED, LeftOut, Rounds, grid_campaign, read_budget, say_left_out, too_slow
from studies.grid.presets import PRESETS, Preset, Series, read_preset
from tuning import networks, protocols
from tuning.settings import choose


@click.command()
@click.option("--preset", type=click.Choice(PRESETS), help="Which grid; that of the campaign if it exists.")
@click.option("--counts", help="Other numbers of objects, where the grid varies them.")
@click.option("--sizes", help="Other sizes of objects (100B, 10KB), where the grid varies them.")
@click.option("--net", help="Networks, or groups of them, instead of the grid's.")
@click.option("--proto", help="Protocols instead of the grid's; differences are against the first.")
@click.option("--runs", type=click.IntRange(min=1), help="Rounds instead of the grid's.")
@click.option("--limit", "limit_s", type=click.FloatRange(min=1), help="Seconds that a load may take.")
@click.option("--budget", help="How long all may take (90s, 60m, 1.5h): cells that do not fit are left out.")
@click.option("--seed", type=int, help=f"What the order of the loads is drawn from ({SEED}).")
@validate_option
@plain_option
@click.option("--campaign", "name", help="The folder in results/; the grid's name unless given.")
@results_option
def main(
    preset: str | None,
    counts: str | None,
    sizes: str | None,
    net: str | None,
    proto: str | None,
    runs: int | None,
    limit_s: float | None,
    budget: str | None,
    seed: int | None,
    validate: bool,
    plain: bool,
    name: str | None,
    results: Path,
) -> None:
    """Measure page load times over a grid of generated pages and networks.

    Values are separated by commas or blanks. A grid that was begun goes on where it was.

    Example: eyelevel grid --preset longlook --net longlook-10mbps-62ms-0loss --budget 60m
    """
    if not (name or preset):
        raise EyelevelError(f"name a grid with --preset: {', '.join(PRESETS)}")
    folder = results / campaign_name(name or preset)
    begun = read_document(folder)
    study, settings = (begun or CampaignDocument({})).study, (begun or CampaignDocument({})).settings
    if begun and study.get("name") != "grid":
        raise EyelevelError(f"{folder} is another kind of campaign; name one of your own with --campaign")
    if preset and study.get("preset", preset) != preset:
        raise EyelevelError(f"{folder} is of the grid {study['preset']}; name another for {preset} with --campaign")
    if not (preset := preset or study.get("preset")):
        raise EyelevelError(f"name a grid with --preset: {', '.join(PRESETS)}")
    grid = narrowed(read_preset(preset), counts, sizes)
    before = [page for site in study.get("pages", ()) if (page := page_named(site))]
    chosen = choose("network", net or list(settings.get("networks", ())) or grid.networks, networks.load())
    over = choose_protocols(proto or list(settings.get("protocols", ())) or grid.protocols, protocols.load())
    if len(over) < 2:
        raise EyelevelError(f"a grid compares protocols, and {over[0].name} is one alone; name more with --proto")
    budget_s = read_budget(budget) if budget else None
    # Before pages are generated, which may take minutes and much room.
    require_root("measuring")
    campaign = grid_campaign(
        folder,
        preset,
        list(dict.fromkeys([*before, *(grid.pages() if counts or sizes or not before else ())])),
        chosen,
        over,
        runs or settings.get("runs", grid.runs),
        settings.get("seed", SEED) if seed is None else seed,
        limit_s or settings.get("limit_s") or grid.limit_s,
        budget_s,
    )
    console = Console(highlight=False)
    measured = set(product(campaign.sites, campaign.networks)) - campaign.without
    say_left_out([LeftOut(**one) for one in (campaign.study or {})["left_out"]], len(measured), console)
    again = f"eyelevel grid --campaign {shlex.quote(folder.name)}"
    again += f" --results {shlex.quote(str(results))}" if results != RESULTS else ""
    rounds = Rounds(measured, campaign.without, None if budget_s is None else time.monotonic() + budget_s)
    with going_on(folder, again):
        needed = [network for network in chosen if network.name in {name for _, name in measured}]
        if validate and (checks := validate_campaign(folder, needed, distinct(over))):
            console.print(f"networks and protocols are as configured: all {len(checks)} checks passed")
        measure(campaign, partial(Watch, console, plain=plain), enough=rounds)
    if rounds.is_over:
        console.print(f"the budget is used up; to go on: {again}")
    for site, network in sorted(too_slow(read_rows(folder))):
        console.print(f"{site} behind {network} cannot finish in its time ({campaign.limit_s:g} s)")
    console.print(f"measured: {folder}; what it says: eyelevel report {folder.name}")


def narrowed(grid: Preset, counts: str | None, sizes: str | None) -> Preset:
    """`grid` with other counts or sizes, each a list as a person gives it. Raises EyelevelError."""
    try:
        some = [int(count) for count in (counts or "").replace(",", " ").split()]
    except ValueError:
        raise EyelevelError(f"--counts takes whole numbers, not {counts!r}") from None
    if min(some, default=1) < 1:
        raise EyelevelError(f"--counts takes numbers from 1 on, not {counts!r}")
    large = [read_size(size) for size in (sizes or "").replace(",", " ").split()]
    series: tuple[Series, ...] = tuple(one.narrowed(some, large) for one in grid.series)
    return Preset(grid.name, series, grid.networks, grid.protocols, grid.runs, grid.limit_s)
