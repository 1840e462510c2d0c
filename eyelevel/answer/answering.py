"""The steps of `eyelevel answer`."""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from analysis import hypotheses
from analysis.report.answer import write_answer
from analysis.report.write import write_report
from analysis.runs import load
from analysis.statistics.spending import LOOKS
from analysis.stopping import saved_line, saving
from base.errors import EyelevelError
from base.privileges import require_browsing
from base.terminal import print_line
from base.words import plural
from dataset.plan import never_enough
from dataset.table import CampaignDocument
from eyelevel.answer.progress import RECORD_S, REPORT_S, Progress
from eyelevel.answer.recording import Recorder, about_servers, recording_faults
from eyelevel.answer.request import OVER, Request
from eyelevel.completing import COMPLETING_S
from eyelevel.estimate import estimate, left_s, pending_validation, runs_within, validation_s
from eyelevel.measuring import carry_out
from eyelevel.measuring_options import MeasuringOptions
from eyelevel.next_step import suggest
from eyelevel.program import INTERRUPTED
from eyelevel.runs import enough_runs
from eyelevel.sections import sections_of
from measure.campaign.budget import Budget, budget_for
from measure.campaign.campaign import Campaign
from measure.campaign.results import require_unused
from measure.completing.completing import font_warnings
from measure.host.exclusive import measuring_alone
from measure.sites.completeness import digest, read
from record.provenance import provenance
from record.site import Site

# The time of a run on two cores (s), assumed before the page is known; those of data/reference on dsl and lte took 6 s.
RUN_S = 7.0


def answer(options: Mapping[str, Any], again: str) -> None:
    """Carry out `eyelevel answer` with its `options`; the command line `again` resumes it. Raises EyelevelError."""
    require_browsing("measuring")
    console = Console(highlight=False)
    request = Request.of(options)
    recorder = Recorder(options["folder"], options["origin_ca"], options["allow_private"])
    require_unused(request.folder)
    with stoppable(again), measuring_alone(left_s):
        # The budget begins after the wait, and the other measurement may have changed the campaign.
        request = Request.of(options)
        progress = Progress(console, request.is_limited, durations(request, validate=options["validate"]))
        site = recorder.recorded(request.target, request.site, progress)
        if request.document:
            require_same_site(request.document, request.campaign(site))
        require_affordable(request, site, progress)
        # Once a campaign has begun, its site no longer changes.
        completeness = recorder.closed(site, progress, fetch=not request.document)
        site = Site.load(site.folder)
        faults, films = recording_faults(site, completeness), font_warnings(site, completeness)
        for text in [*faults, *films]:
            click.echo(f"eyelevel: WARNING: {text}", err=True)
        measured(request, site, options, progress, again)
    progress.begins("report", "writing the answer and the report")
    servers = [*provenance(site), *about_servers(site, request.loading, request.folder.name)]
    text, more = reported(request.folder, faults, servers, films)
    click.echo(text)
    if more:
        suggest(more)


def durations(request: Request, *, validate: bool) -> dict[str, float]:
    """How long each step of `request` takes (s), estimated before the page is known."""
    validating_s = validation_s(len(request.networks), 2) if validate else 0
    left_s = {"record": RECORD_S, "close": 2 * COMPLETING_S, "validate": validating_s, "report": REPORT_S}
    planned_s = RUN_S * request.runs * len(request.networks) * len(OVER.split(","))
    spare_s = max(0.0, request.budget.seconds - sum(left_s.values()))
    return {**left_s, "measure": min(planned_s, spare_s) if request.is_limited else planned_s}


def measured(request: Request, site: Site, options: Mapping[str, Any], progress: Progress, again: str) -> None:
    """Validate, and measure the campaign of `request` with `site`. Raises EyelevelError."""
    campaign, budget = request.campaign(site), request.budget
    other_s = progress.left_s["validate"] + REPORT_S
    left_s = budget.remaining_s - other_s
    if campaign.auto and not request.document:
        campaign = replace(campaign, runs=affordable_runs(campaign, budget, other_s))
    enough = enough_runs if campaign.auto else never_enough
    expected = estimate(campaign, enough)
    expected_s = expected.forecast.seconds
    progress.left_s["measure"] = min(expected_s, max(0.0, left_s)) if request.is_limited else expected_s
    if not options["validate"]:
        progress.skips("validate", "not asked for")
    elif not expected.runs:
        progress.skips("validate", "no run is to be made")
    elif wanted := pending_validation(campaign):
        progress.left_s["validate"] = validation_s(len(wanted.networks), len(wanted.protocols))
        progress.begins("validate", "networks and protocols")
    else:
        progress.skips("validate", "networks and protocols were validated before")

    def begin_measuring() -> None:
        at_most = "at most " if campaign.auto else ""
        on = ", ".join(campaign.networks)
        progress.begins("measure", f"{site.name} on {on}, {at_most}{plural('run', campaign.runs)} of each protocol")

    budget_s = budget.remaining_s if request.is_limited else None
    how = MeasuringOptions(
        again, plain=options["plain"], validate=options["validate"], budget_s=budget_s, after_s=REPORT_S
    )
    carry_out(campaign, how, progress.console, enough, when_validated=begin_measuring)
    if campaign.auto and (saved := saving(campaign.folder, enough_runs(campaign.folder))).runs:
        print_line(progress.console, saved_line(saved))


@contextmanager
def stoppable(again: str) -> Iterator[None]:
    """End the process when it is interrupted within this block; `again` is the command line that resumes it."""
    try:
        yield
    except KeyboardInterrupt:
        click.echo(f"\nstopped; recordings are kept; to resume: {again}", err=True)
        sys.exit(INTERRUPTED)


def require_same_site(document: CampaignDocument, campaign: Campaign) -> None:
    """Raise EyelevelError if a site of `campaign` has changed since it began with that in `document`."""
    for name, site in campaign.sites.items():
        if document.settings.sites[name].get("sha256") != digest(site):
            raise EyelevelError(
                f"{site.name} was recorded again, or changed, since the campaign {campaign.folder.name} began; use "
                f"another campaign for it: CAMPAIGN={campaign.folder.name}-2"
            )


def require_affordable(request: Request, site: Site, progress: Progress) -> None:
    """Raise EyelevelError, before `site` is completed, if the budget of a new campaign is too small."""
    if request.is_limited and not request.document:
        steps = ("validate", "report") if read(site) else ("close", "validate", "report")
        affordable_runs(request.campaign(site), request.budget, sum(progress.left_s[step] for step in steps))


def affordable_runs(campaign: Campaign, budget: Budget, other_s: float) -> int:
    """How many runs of each setting fit into what remains of `budget`, at most those of `campaign`; other work takes
    `other_s` of it.

    Raises EyelevelError when they are too few: none, or too few for any verdict where the verdict ends the campaign.
    """
    runs, each_s = runs_within(budget.remaining_s - other_s, campaign)
    least = LOOKS[0] if campaign.auto else 1
    if runs < least:
        runs_of_each = f"{plural('run', least)} of each protocol"
        if campaign.auto:
            runs_of_each += ", the minimum for any verdict,"
        or_runs = f"RUNS={max(1, runs)} without BUDGET, which may decide nothing" if campaign.auto else "no BUDGET"
        raise EyelevelError(
            f"the budget is too small for {runs_of_each} on {', '.join(campaign.networks)}; "
            f"give at least BUDGET={budget_for(least * each_s + other_s)}, or fewer networks (NET), or {or_runs}"
        )
    return runs


def reported(
    folder: Path, faults: Sequence[str], servers: Sequence[str], films: Sequence[str] = ()
) -> tuple[str, str | None]:
    """Write the report and the answer of the campaign in `folder`; return the answer's first sentence with its path,
    and the command for more runs if something is not decided.

    `faults`, `servers` and `films` are passed to `write_answer`. Raises EyelevelError.
    """
    campaign = load(folder)
    question = hypotheses.of_campaign(folder, campaign.document)
    if has_report := bool(len(campaign.valid)):
        write_report(folder, sections_of(folder), question)
    sentence, page, more = write_answer(folder, question, faults, has_report=has_report, servers=servers, films=films)
    doubt = "\nThe recording may not represent the site: see the warnings above and on the page." if faults else ""
    return f"\n{sentence}{doubt}\n{page}", more
