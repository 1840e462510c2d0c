"""What the command lines of studies whose runs are folders (`studies.runs`) share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from base.errors import EyelevelError
from base.places import RESULTS
from measure.campaign.command import going_on
from studies.runs import Study, make_watched

RUNS = 10
SEED = 1

Command = Callable[..., Any]


def study_options(name: str) -> Callable[[Command], Command]:
    """Decorate a command with the options of every study; results go to the campaign `name` unless told otherwise."""
    results = click.Path(path_type=Path)
    options = (
        click.option("--site", required=True, help="Folders in sites/, or demo sites."),
        click.option("--net", required=True, help="Networks of tuning/networks.toml."),
        click.option("--proto", required=True, help="Protocols of tuning/protocols.toml."),
        click.option("--runs", default=RUNS, show_default=True, type=click.IntRange(min=1), help="Runs of each."),
        click.option("--seed", default=SEED, show_default=True, help="What the order of the runs is drawn from."),
        click.option("--campaign", "name", default=name, show_default=True, help="The folder in results/."),
        click.option("--results", type=results, default=RESULTS, help="Another folder for results."),
    )

    def decorate(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def carry_out(study: Study) -> Path:
    """Make what is not there yet of `study`, and tell of it; returns the folder of its runs.

    Ends the process when it is told to stop. Raises EyelevelError, also when runs were given up.
    """
    with going_on(study.campaign, "give the same command"):
        given_up = make_watched(study, Console(highlight=False))
    folder = study.campaign / study.name
    if given_up:
        raise EyelevelError(f"{len(given_up)} runs were given up; their attempts are in {folder}, under rejected")
    return folder
