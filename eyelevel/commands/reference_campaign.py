"""The workflow of `eyelevel reference`: measure the campaign that a file declares, and keep it as a package that can be
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
from eyelevel.estimate import validation_s
from eyelevel.measuring import carry_out
from eyelevel.measuring_options import MeasuringOptions, campaign_name, document_of
from eyelevel.study_command import command_of
from measure.campaign.budget import Budget, read_budget
from measure.campaign.campaign import Campaign
from measure.campaign.declared import DeclaredCampaign, DeclaredSite, read_declared
from measure.campaign.forecast import Forecaster
from measure.campaign.results import require_unused
from measure.campaign.resuming import resume_from_package
from measure.completing.completing import summary
from measure.host.exclusive import measuring_alone
from measure.run.aliases import choose_protocols
from measure.sites.completeness import Completeness, read
from record import collection, formats
from record.site import Site, write_site
from tuning import networks, protocols
from tuning.settings import choose

# The time on two cores to write the report and the package (s), which a budget must leave.
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
    allowed_s = read_budget(budget) if budget else None
    declared = read_declared(declaration)
    folder = results / campaign_name(name or declaration.stem)
    package = into or declaration.with_suffix("")
    question = hypotheses.read_text(declaration.with_name(declared.hypotheses))
    hypotheses.parse(question, declaration.with_name(declared.hypotheses))
    if estimate:
        campaign = campaign_of(declared, folder, sites_of(declared.sites, corpus, console), question)
        # The package is written at the end of a session; if a session was stopped, the folder has more runs than the
        # package.
        rows = measured_rows(folder) or measured_rows(package)
        for line in (*reasons(declared.sites), preparation_line(campaign, rows), *estimate_lines(campaign, rows)):
            print_line(console, line)
        return
    require_browsing("measuring")
    require_unused(folder)
    with measuring_alone():
        # The budget begins after the wait for another measurement.
        allowed = None if allowed_s is None else Budget.of(allowed_s)
        if is_package(package) and resume_from_package(package, folder):
            print_line(console, f"resumed from {package}")
        document = document_of(folder, "", command_of) or CampaignDocument()
        # Once a campaign contains a site, neither the site nor its completeness changes.
        sites = [
            site if site.name in document.settings.sites else closed(site, console)
            for site in sites_of(declared.sites, corpus, console)
        ]
        campaign = campaign_of(declared, folder, sites, question)
        budget_s = allowed.remaining_s if allowed else None
        options = MeasuringOptions(again, plain=plain, validate=validate, budget_s=budget_s, after_s=PACKAGE_S)
        carry_out(
            campaign, options, console, announcement=lambda campaign: estimate_lines(campaign, measured_rows(folder))
        )
    click.echo(package_of(folder, package, LICENCE))


def campaign_of(declared: DeclaredCampaign, folder: Path, sites: Iterable[Site], question: str) -> Campaign:
    """The `declared` campaign in `folder`, with its `sites` and its `question`. Raises EyelevelError."""
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
    """The `declared` sites, in their order; missing ones are imported. Raises EyelevelError."""
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
    """The path of the recording of `site`. Raises EyelevelError when it does not exist."""
    named = corpus or (Path(value) if (value := os.environ.get(CORPUS_VARIABLE)) else None)
    folder = named or PROJECT.parent / "shared" / "corpus"
    if not (path := folder / site.recording).exists():
        raise EyelevelError(
            f"the recording of {site.name} is missing: {path}; set {CORPUS_VARIABLE} (--corpus) to the folder of the "
            f"corpus, or import the site: make import FROM=…/{site.recording}"
        )
    return path


def closed(site: Site, console: Console, complete: Callable[[Site], Completeness] = complete_now) -> Site:
    """`site` after it was completed, by `complete` now or earlier, including the exchanges fetched for it; prints how
    complete it is.

    Raises EyelevelError.
    """
    print_line(console, summary(site.name, read(site) or complete(site)))
    return Site.load(site.folder)


def measured_rows(folder: Path) -> list[Row]:
    """The attempts of the campaign or package in `folder`; none before its first. Raises EyelevelError."""
    return read_rows(folder) if (folder / RUNS).is_file() else []


def reasons(declared: Iterable[DeclaredSite]) -> Iterable[str]:
    """A line for each declared site: why it was chosen."""
    return (f"{site.name}: {site.reason}" for site in declared)


def preparation_line(campaign: Campaign, rows: Sequence[Row]) -> str:
    """A line on the work before the first run of a session on a machine and after its last.

    If `campaign` has no `rows` yet, that includes completing the sites.
    """
    unclosed = 0 if rows else sum(read(site) is None for site in campaign.sites.values())
    validation = in_words(validation_s(len(campaign.networks), len(campaign.protocols)))
    completing = f"completing {unclosed} sites, about {in_words(unclosed * COMPLETING_S)}; " if unclosed else ""
    return (
        f"before: {completing}validation, about {validation}; after: the report and the package, {in_words(PACKAGE_S)}"
    )


def estimate_lines(campaign: Campaign, rows: Sequence[Row]) -> list[str]:
    """Lines on the time that `campaign` takes: a round (a block of each site and network) on each network, a whole
    round, and the runs that remain; `rows` are the runs made so far."""
    done = {row.of for row in rows if row.valid}
    blocks = campaign.plan()
    first = [run for block in blocks for run in block if run.number == 1]
    forecaster = Forecaster(rows, campaign.folder, campaign.run_model())

    def seconds(runs: Iterable[Run]) -> float:
        return forecaster.forecast(runs).seconds

    of_network = {name: seconds(run for run in first if run.network == name) for name in campaign.networks}
    remaining = [run for block in blocks for run in block if run not in done]
    counts = f"{len(campaign.sites)} sites x {len(campaign.networks)} networks x {len(campaign.protocols)} protocols"
    by_network = ", ".join(f"{name} {in_words(length)}" for name, length in of_network.items())
    source = f"as {len(rows)} attempts took" if rows else "by the sizes of pages and the rates of networks"
    return [
        f"{counts}: {len(first)} loads in a round, about {in_words(sum(of_network.values()))} ({by_network}), {source}",
        f"open: {len(remaining)} of {campaign.runs * len(first)} runs, about {in_words(seconds(remaining))}; "
        "rounds are measured one after another: each site on all its networks, then the next site",
    ]
