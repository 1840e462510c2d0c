"""`eyelevel reference`: measure the campaign that a file declares, and keep it as a package, from which it can be
resumed."""

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import click
from rich.console import Console

from analysis import hypotheses
from base.errors import EyelevelError
from base.ownership import give_to_caller
from base.places import PROJECT, SITES
from base.privileges import require_browsing
from base.terminal import print_line
from base.words import in_words
from dataset.package import is_package
from dataset.table import RUNS, CampaignDocument, Row, Run, read_rows
from eyelevel.commands.package import package_of
from eyelevel.completing import COMPLETING_S, complete_now
from eyelevel.defaults import CORPUS_VARIABLE, LICENCE
from eyelevel.measuring import carry_out, validation_s
from eyelevel.measuring_options import MeasuringOptions, campaign_name, document_of
from eyelevel.study_command import command_of
from measure.campaign.budget import Budget, read_budget
from measure.campaign.campaign import Campaign
from measure.campaign.declared import DeclaredCampaign, DeclaredSite, read_declared
from measure.campaign.forecast import forecast
from measure.campaign.resuming import resume_from_package
from measure.completing.completing import summary
from measure.run.aliases import choose_protocols
from measure.sites.completeness import Completeness, read
from record import collection, formats
from record.site import Site, write_site
from tuning import networks, protocols
from tuning.settings import choose

# The time that writing the report and the package takes on two cores (s), which a budget must leave.
PACKAGE_S = 180.0


def measure_reference(
    declaration: Path,
    into: Path | None,
    corpus: Path | None,
    name: str | None,
    budget: str | None,
    results: Path,
    validate: bool,
    estimate: bool,
    plain: bool,
    again: str,
) -> None:
    """Carry out `eyelevel reference` with its options; the command line `again` resumes it. Raises EyelevelError."""
    console = Console(highlight=False)
    allowed = Budget.of(read_budget(budget)) if budget else None
    declared = read_declared(declaration)
    folder = results / campaign_name(name or declaration.stem)
    package = into or declaration.with_suffix("")
    question = hypotheses.read_text(declaration.with_name(declared.hypotheses))
    hypotheses.parse(question, declaration.with_name(declared.hypotheses))
    if estimate:
        campaign = campaign_of(declared, folder, sites_of(declared.sites, corpus, console), question)
        # A package is written when a session ends, so the folder has more where one was stopped.
        rows = measured_rows(folder) or measured_rows(package)
        for line in (*reasons(declared.sites), preparation_line(campaign, rows), *estimate_lines(campaign, rows)):
            print_line(console, line)
        return
    require_browsing("measuring")
    if is_package(package) and resume_from_package(package, folder):
        print_line(console, f"resumed from {package}")
    document = document_of(folder, "", command_of) or CampaignDocument()
    # The completeness of a site is fixed when it comes to a campaign, and so is the site.
    sites = [
        site if site.name in document.settings.sites else closed(site, console)
        for site in sites_of(declared.sites, corpus, console)
    ]
    campaign = campaign_of(declared, folder, sites, question)
    budget_s = allowed.remaining_s - PACKAGE_S if allowed else None
    options = MeasuringOptions(again, plain=plain, validate=validate, budget_s=budget_s)
    carry_out(campaign, options, console, announcement=lambda campaign: estimate_lines(campaign, measured_rows(folder)))
    click.echo(package_of(folder, package, LICENCE))


def campaign_of(declared: DeclaredCampaign, folder: Path, sites: Iterable[Site], question: str) -> Campaign:
    """The `declared` campaign in `folder`, of `sites`, which asks the `question`. Raises EyelevelError."""
    return Campaign(
        folder=folder,
        sites={site.name: site for site in sites},
        networks={network.name: network for network in choose("network", list(declared.networks), networks.load())},
        protocols={one.name: one for one in choose_protocols(list(declared.protocols), protocols.load())},
        runs=declared.runs,
        seed=declared.seed,
        films=declared.film_policy,
        hypotheses=question,
        withdrawn=declared.withdrawn,
    )


def sites_of(declared: Iterable[DeclaredSite], corpus: Path | None, console: Console) -> list[Site]:
    """The `declared` sites, in their order; those that are not there are imported. Raises EyelevelError."""
    sites = []
    for one in declared:
        if one.recording and not (SITES / one.name).is_dir():
            print_line(console, f"importing {one.name}")
            recording = formats.read_recording(recording_path(one, corpus))
            write_site(recording, SITES / one.name)
            give_to_caller(SITES / one.name, SITES)
        sites.append(collection.choose_site(one.name))
    return sites


def recording_path(site: DeclaredSite, corpus: Path | None) -> Path:
    """Where the recording of `site` is. Raises EyelevelError when it is not there."""
    named = corpus or (Path(value) if (value := os.environ.get(CORPUS_VARIABLE)) else None)
    folder = named or PROJECT.parent / "shared" / "corpus"
    if not (path := folder / site.recording).exists():
        raise EyelevelError(
            f"the recording of {site.name} is not there: {path}; say where the corpus is by {CORPUS_VARIABLE} "
            f"(--corpus), or import the site yourself: make import FROM=…/{site.recording}"
        )
    return path


def closed(site: Site, console: Console, complete: Callable[[Site], Completeness] = complete_now) -> Site:
    """`site` as it is after it was completed, by `complete` or earlier, with the exchanges that were fetched for it;
    prints how complete it is. Raises EyelevelError."""
    print_line(console, summary(site.name, read(site) or complete(site)))
    return Site.load(site.folder)


def measured_rows(folder: Path) -> list[Row]:
    """The attempts that the campaign or the package in `folder` has; none before its first. Raises EyelevelError."""
    return read_rows(folder) if (folder / RUNS).is_file() else []


def reasons(declared: Iterable[DeclaredSite]) -> Iterable[str]:
    """Which sites were chosen, and why."""
    return (f"{site.name}: {site.reason}" for site in declared)


def preparation_line(campaign: Campaign, rows: Sequence[Row]) -> str:
    """The work before the first run of a session on a machine, and after its last; sites are completed before the first
    of all `rows` of `campaign`."""
    unclosed = 0 if rows else sum(read(site) is None for site in campaign.sites.values())
    validation = in_words(validation_s(len(campaign.networks), len(campaign.protocols)))
    completing = f"completing {unclosed} sites, about {in_words(unclosed * COMPLETING_S)}; " if unclosed else ""
    return (
        f"before: {completing}validation, about {validation}; after: the report and the package, {in_words(PACKAGE_S)}"
    )


def estimate_lines(campaign: Campaign, rows: Sequence[Row]) -> list[str]:
    """The time that `campaign`, of which `rows` have been made, takes: a round (a block of each site and network) on
    each network, a round in all, and the runs that are open."""
    done = {row.of for row in rows if row.valid}
    blocks = campaign.plan()
    first = [run for block in blocks for run in block if run.number == 1]
    model = campaign.run_model()

    def seconds(runs: Iterable[Run]) -> float:
        return forecast(runs, rows, campaign.folder, model).seconds

    behind = {name: seconds(run for run in first if run.network == name) for name in campaign.networks}
    remaining = [run for block in blocks for run in block if run not in done]
    counts = f"{len(campaign.sites)} sites x {len(campaign.networks)} networks x {len(campaign.protocols)} protocols"
    by_network = ", ".join(f"{name} {in_words(of_network)}" for name, of_network in behind.items())
    source = f"as {len(rows)} attempts took" if rows else "by the sizes of pages and the rates of networks"
    return [
        f"{counts}: {len(first)} loads in a round, about {in_words(sum(behind.values()))} ({by_network}), {source}",
        f"open: {len(remaining)} of {campaign.runs * len(first)} runs, about {in_words(seconds(remaining))}; whole "
        "rounds come one after another, in each a site behind all networks after another",
    ]
