"""Measures a campaign for every command that measures: from its preparation to the engine (`measure.campaign.engine`)
and its end."""

import errno
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

import click
from rich.console import Console

from base.denial import denial
from base.errors import EyelevelError
from base.ownership import give_to_caller
from base.terminal import print_line
from base.words import in_words, plural
from dataset.checks import outcomes_in_words
from dataset.plan import Enough, never_enough
from dataset.table import DOCUMENT
from eyelevel.consent import require_consent
from eyelevel.estimate import delayed_sites, estimate, left_s, pending_validation, validation_s
from eyelevel.lanes import lanes_of_campaign
from eyelevel.measuring_options import MeasuringOptions
from eyelevel.program import INTERRUPTED
from eyelevel.requirements import require_measurable, require_programs
from measure.campaign.budget import Budget, budget_for
from measure.campaign.campaign import Campaign
from measure.campaign.engine import measure
from measure.campaign.forecast import require_space
from measure.campaign.lanes import measure_in_lanes
from measure.campaign.place import Place, measure_here
from measure.campaign.progress import ProgressDisplay
from measure.campaign.results import require_unused
from measure.host.exclusive import measuring_alone
from measure.host.timekeeping import priority_warning, timekeeping
from measure.validate.record import validate_pending, validate_worker
from tuning.defaults import DEFAULT_SHELLS

# Errors of the disk that holds the results, by errno: what is wrong and what to do.
DISK_FAULTS = {
    errno.ENOSPC: "is full; free some of it",
    errno.EDQUOT: "is full for this user (quota); free some of it",
    errno.EROFS: "is read-only, as the kernel makes it after errors (dmesg shows them); make it writable",
    errno.EIO: "has errors (dmesg shows them); repair it",
    errno.ESTALE: "has changed on the server (NFS); mount it again",
}


def no_announcement(campaign: Campaign) -> Iterable[str]:
    """No lines: the announcement of campaigns before which nothing is printed."""
    return ()


def carry_out(
    campaign: Campaign,
    options: MeasuringOptions,
    console: Console,
    enough: Enough = never_enough,
    announcement: Callable[[Campaign], Iterable[str]] = no_announcement,
    when_validated: Callable[[], None] = lambda: None,
) -> None:
    """Measure `campaign`, and print its progress; `enough` may end sites before the planned number of runs.

    An estimate and the lines of the `announcement` are printed before validation; `when_validated` is called before the
    first run. Ends the process when it is interrupted. Raises EyelevelError.
    """
    campaign = replace(campaign, lanes=lanes_of_campaign(campaign, options))
    require_consent(campaign, options, console)
    require_measurable(campaign, options)
    # Whoever waited for the same campaign would resume it as it was before.
    require_unused(campaign.folder)
    expected = estimate(campaign, enough)
    # Without open runs, nothing is measured. The workers of a cluster lock their own machines, and validate them unless
    # they are trusted; this machine only collects their results.
    measures_here = bool(expected.runs) and not options.dask
    with measuring_alone(left_s) if measures_here else nullcontext(), interruptible(campaign.folder, options.again):
        budget = None if options.budget_s is None else Budget.of(options.budget_s - options.after_s)
        wanted = pending_validation(campaign) if measures_here and options.validate else None
        first_s = validation_s(len(wanted.networks), len(wanted.protocols)) if wanted else 0.0
        if budget and expected.runs and budget.seconds < (least_s := first_s + expected.first_s):
            raise EyelevelError(
                f"the budget is too small for {'validation and ' if wanted else ''}the first runs; give at least "
                f"BUDGET={budget_for(least_s + options.after_s)}"
            )
        if expected.runs:
            print_line(console, f"{expected}{f', after about {in_words(first_s)} of validation' if first_s else ''}")
        for line in announcement(campaign):
            print_line(console, line)
        require_space(expected.forecast.bytes, campaign.folder.parent)
        if measures_here:
            note_priority(campaign, console)
            require_programs(campaign)
        if wanted:
            checks = validate_pending(campaign.folder, wanted)
            outcomes = outcomes_in_words((check.measured, check.passed) for check in checks)
            print_line(console, f"networks and protocols are as configured: {outcomes}")
        if expected.runs:
            when_validated()
        else:
            # The engine may reject an earlier run now, by comparing it with others. It is repeated after a validation.
            budget = Budget.of(0)
        display = partial(ProgressDisplay, console, plain=options.plain, lanes=campaign.lanes)
        if open_runs := measure(campaign, display, place_of(campaign, options), enough, budget):
            why = "the budget is used up" if expected.runs else "earlier runs were rejected"
            print_line(console, f"{why}; {plural('run', open_runs)} left; to resume: {options.again}")


def note_priority(campaign: Campaign, console: Console) -> None:
    """Print a note if our shells emulate the networks of `campaign` but have no real-time priority here."""
    if campaign.loading.shells == DEFAULT_SHELLS and (warning := priority_warning(timekeeping())):
        print_line(console, f"note: {warning}")


def place_of(campaign: Campaign, options: MeasuringOptions) -> Place:
    """Where `campaign` is measured: on a cluster, in the lanes of this machine, or on the whole machine."""
    if options.dask:
        from measure.campaign.cluster import Cluster

        validation = partial(validate_worker, delayed=delayed_sites(campaign))
        return Cluster(options.dask, campaign, None if options.trust_workers else validation).measure
    return measure_here if campaign.lanes.is_one else measure_in_lanes


@contextmanager
def interruptible(folder: Path, again: str) -> Iterator[None]:
    """Measure into the campaign's `folder` within this block; `again` is the command line that resumes it.

    Ends the process when it is interrupted. Raises EyelevelError when the disk is full or broken, when a file cannot be
    used as needed, or when somebody has removed the folder.
    """
    try:
        if not folder.parent.exists():
            folder.parent.mkdir(parents=True)
            give_to_caller(folder.parent)
        yield
    except KeyboardInterrupt:
        click.echo(f"\nstopped; results so far are in {folder}; to resume: {again}", err=True)
        sys.exit(INTERRUPTED)
    except FileNotFoundError as error:
        # If the failed call used a file descriptor, the file name in the error is a number.
        if not Path(str(error.filename)).is_relative_to(folder) or (folder / DOCUMENT).exists():
            raise
        raise EyelevelError(
            f"{folder} was removed, or moved, during the measurement; put it back, then resume: {again}"
        ) from None
    except PermissionError as error:
        if not (fault := denial(error)):
            raise
        is_result = Path(os.fsdecode(error.filename)).is_relative_to(folder.parent)
        remedy = "name another folder" if is_result else f"allow it, then resume: {again}"
        raise EyelevelError(f"{fault}; {remedy}") from None
    except OSError as error:
        if error.errno not in DISK_FAULTS:
            raise
        fault = DISK_FAULTS[error.errno]
        raise EyelevelError(f"the disk of {folder} {fault}, then resume: {again}; results so far are safe") from None
