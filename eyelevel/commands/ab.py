"""`eyelevel ab`: measure two settings in one campaign, and say whether B is faster or slower than A."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from base.errors import EyelevelError
from base.terminal import plain_table, print_line
from base.words import plural
from dataset.table import DOCUMENT, CampaignDocument
from eyelevel.arguments import begin
from eyelevel.commands.campaign import announcement, planned_campaign
from eyelevel.commands.compare import NOT_DECIDED_STATUS, WORSE_STATUS, share_of, status_in_words
from eyelevel.defaults import RUNS
from eyelevel.make import same_command
from eyelevel.measuring_options import MeasuringOptions, campaign_name, document_of, unnamed_variables
from eyelevel.names import require_known_networks
from eyelevel.options import parameters_of
from measure.campaign.budget import budget_for, read_budget

if TYPE_CHECKING:
    from rich.console import Console

    from analysis.ab import SettingsChange, Side
    from measure.campaign.campaign import Campaign

# With a budget, as many runs are planned as take this share of it: a plan that is cut off is tested with the error of
# an earlier look, and finds less.
PLANNED_SHARE = 0.9
# Fewer blocks are no evidence, and more than the second number are no better use of a day than further pages.
LEAST_RUNS, MOST_RUNS = 2, 500
# How long the page takes (s).
PAGE_S = 10.0
DECISIVE = ("net", "sites")


@click.command(params=parameters_of("ab"))
def main(first: str, second: str, worse_than: str | None, decide: bool, **options: Any) -> None:
    """Measure two settings, A and B, side by side in one campaign: is B faster or slower than A?

    A and B are variables of 'make campaign': one protocol each, and if wanted a browser, a device, or variants of the
    same sites. All else is given once, as options. Equal settings (A/A) must show no difference. The same command
    resumes, and the campaign is like any other.

    Exit status: 0 if B is not shown to be worse; 1 if A and B cannot be measured; 2 if A, B or an option is wrong; 3 if
    B is shown to be worse: slower, by more than --worse-than if given, or with more slow or lost loads; 4 with --decide
    if it is not decided.

    Example: eyelevel ab PROTO=quic PROTO=quic+bbr --net lte --sites demo-news --budget 10m
    """
    from rich.console import Console

    threshold = None if worse_than is None else share_of(worse_than)
    require_known_networks(options["net"])
    budget_s = read_budget(options["budget"]) if options["budget"] else None
    folder: Path = options["results"] / campaign_name(options["name"])
    begin(f"preparing the campaign {folder.name}")

    from analysis import hypotheses
    from eyelevel.commands.two_settings import TwoSettings, require_same_settings
    from eyelevel.study_command import command_of

    original = document_of(folder, "", command_of)
    two = TwoSettings.of((first, second), options, original)
    most = MOST_RUNS if budget_s else RUNS
    runs = options["runs"] or (original.settings.runs if original else None) or most
    question = None if original else hypotheses.DECLARED.with_name("ab.toml")
    sites = two.all_sites or options["sites"]
    chosen = {**options, "proto": two.protocols, "sites": sites, "browser": None, "device": None}
    campaign = planned_campaign({**chosen, "hypotheses": question}, folder, original, runs)
    if two.browsers:
        loading = replace(campaign.loading, browser=two.browsers[0])
        campaign = replace(campaign, loading=loading, further_browsers=two.browsers[1:])
    if original:
        require_same_settings(campaign, original)
    again = same_command("ab", click.get_current_context()) + ("" if options["name"] else f" CAMPAIGN={folder.name}")
    console = Console(highlight=False)
    measured(campaign, original, options, again, budget_s, console)
    sys.exit(reported(folder, two.sides(campaign), threshold, console, decide=decide))


def measured(
    campaign: Campaign,
    original: CampaignDocument | None,
    options: dict[str, Any],
    again: str,
    budget_s: float | None,
    console: Console,
) -> None:
    """Measure what is open of `campaign`, within `budget_s` if given. Raises EyelevelError."""
    from eyelevel.estimate import estimate
    from eyelevel.lanes import lanes_of_campaign
    from eyelevel.measuring import carry_out, no_announcement
    from measure.campaign.results import require_resumable

    unnamed = unnamed_variables(original, options, DECISIVE)
    after_s = PAGE_S if budget_s else 0.0
    how = MeasuringOptions.take(options, again=again, unnamed=unnamed, budget_s=budget_s, after_s=after_s)
    if original and not estimate(campaign).runs:
        # Nothing is measured any more, so programs and lanes may be others.
        settings = replace(campaign.settings(), lanes=original.settings.lanes, at_once=original.settings.at_once)
        require_resumable(campaign.folder, replace(original, settings=settings), campaign.hypotheses)
        return
    if budget_s is not None and not original and options["runs"] is None:
        campaign = replace(campaign, lanes=lanes_of_campaign(campaign, how))
        campaign = replace(campaign, runs=affordable_runs(campaign, budget_s - PAGE_S, validates=how.validate))
    carry_out(campaign, how, console, announcement=no_announcement if original else announcement)


def affordable_runs(campaign: Campaign, budget_s: float, *, validates: bool) -> int:
    """How many runs of each setting `budget_s` suffices for, at most those of `campaign`; `validates`: whether
    validation is part of it. Raises EyelevelError if they are too few."""
    from eyelevel.estimate import pending_validation, runs_within, validation_s

    wanted = pending_validation(campaign) if validates else None
    first_s = validation_s(len(wanted.networks), len(wanted.protocols)) if wanted else 0.0
    runs, each_s = runs_within((budget_s - first_s) * PLANNED_SHARE, campaign)
    if runs < LEAST_RUNS:
        least_s = first_s + LEAST_RUNS * each_s / PLANNED_SHARE + PAGE_S
        raise EyelevelError(
            f"the budget is too small for {plural('run', LEAST_RUNS)} of A and of B at each site on each network; give "
            f"at least BUDGET={budget_for(least_s)}, or fewer sites or networks"
        )
    return runs


def reported(folder: Path, sides: tuple[Side, Side], threshold: float | None, console: Console, *, decide: bool) -> int:
    """Compare both settings of the campaign in `folder`, write and print the result, and return the exit status. Raises
    EyelevelError."""
    from analysis import hypotheses, runs
    from analysis.ab import compare
    from analysis.report.ab import INDEX, JSON, SUMMARY, details, result, write

    if not (folder / DOCUMENT).exists():
        raise EyelevelError(
            f"nothing was measured, so there is nothing to compare: {folder} has no {DOCUMENT}; "
            "run the same command again"
        )
    campaign = runs.load(folder)
    change = compare(campaign, *sides, hypotheses.of_campaign(folder, campaign.document), threshold)
    into = write(change)
    print_contrasts(change, console)
    for text in details(change):
        print_line(console, text)
    print_line(console, f"page: {into / INDEX}, with {JSON} and {SUMMARY} beside it")
    status = WORSE_STATUS if change.is_worse else NOT_DECIDED_STATUS if decide and not change.is_decided else 0
    print_line(console, f"result: {result(change)} ({status_in_words(status, 'ab')})")
    return status


def print_contrasts(change: SettingsChange, console: Console) -> None:
    """Print the change and the verdict in each metric on each network."""
    from analysis.report.ab import tables

    (contrasts, *_) = tables(change)
    table = plain_table(title=f"B ({change.b.text}) against A ({change.a.text})")
    names = ["network", "metric", "change", "interval", "verdict", "worse", "detectable"]
    for name in names:
        table.add_column(name)
    for row in contrasts.texts[names].itertuples(index=False):
        table.add_row(*row)
    console.print(table)
