"""The options of commands that measure, and which campaign they name; `eyelevel.measuring` carries them out."""

import os
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import click

from base.errors import EyelevelError
from base.places import RESULTS
from browsers.registry import all_browsers
from dataset.table import CampaignDocument, read_document
from eyelevel.options import INSECURE_HELP, LANES_HELP
from measure.campaign.results import require_no_others
from measure.cluster.addresses import scheduler_address
from tuning.defaults import DEFAULT_BROWSER
from tuning.devices import DESKTOP

# The longest name of a folder (NAME_MAX of limits.h).
NAME_BYTES = 255


def measuring_options(
    *, validates: bool, default: str = "the time of day", several_browsers: bool = False
) -> list[click.Option]:
    """The options of every command that measures. `default` is the campaign's name unless given; `validates`: whether
    networks and protocols are measured before unless the command line says otherwise; `several_browsers`: whether it
    can have a list of browsers."""
    browser = click.Option(
        ["--browser"], type=click.Choice(list(all_browsers())), help=f"The browser ({DEFAULT_BROWSER})."
    )
    if several_browsers:
        names = ", ".join(all_browsers())
        browser = click.Option(["--browser"], help=f"Browsers ({DEFAULT_BROWSER}), or all: {names}.")
    choices = f"{DESKTOP}, or of tuning/devices.toml"
    return [
        browser,
        click.Option(["--device"], help=f"{'Devices' if several_browsers else 'The device'} ({DESKTOP}): {choices}."),
        click.Option(["--seed"], type=int, help="What the order of the runs is drawn from (1)."),
        click.Option(["--campaign", "name"], help=f"The folder in results/; {default} unless given."),
        click.Option(
            ["--results"],
            type=click.Path(file_okay=False, path_type=Path),
            default=RESULTS,
            help="Another folder for results.",
        ),
        click.Option(["--dask"], help="Measure on the workers of a cluster whose scheduler is there: tls://head:8786."),
        click.Option(
            ["--trust-workers"], is_flag=True, help="Do not hold a cluster's workers to 'make validate' before."
        ),
        click.Option(["--lanes"], help=LANES_HELP),
        click.Option(["--insecure"], is_flag=True, help=INSECURE_HELP),
        click.Option(["--plain"], is_flag=True, help="Lines only, for logs."),
        click.Option(
            ["--yes", "agreed"],
            is_flag=True,
            help="Begin without a question, however long it takes (docs/terminal.md).",
        ),
        click.Option(
            ["--validate/--no-validate"],
            default=validates,
            show_default=True,
            help="Whether to measure networks and protocols before.",
        ),
    ]


@dataclass(frozen=True)
class MeasuringOptions:
    """What the options of a command that measures say beside its campaign."""

    dask: str | None
    trust_workers: bool
    insecure: bool
    plain: bool
    validate: bool
    lanes: str | None = None
    agreed: bool = False

    @property
    def lane_count(self) -> int:
        """How many lanes the command line names; 1 where it leaves that to the machine."""
        return max(1, int(self.lanes)) if self.lanes and self.lanes.isdecimal() else 1

    @classmethod
    def take(cls, options: dict[str, Any]) -> "MeasuringOptions":
        """Take what is in `options` of it away from them. Raises EyelevelError when it cannot be here."""
        names = ("dask", "trust_workers", "insecure", "plain", "validate", "lanes", "agreed")
        chosen = cls(**{name: options.pop(name) for name in names})
        return replace(chosen, dask=chosen.dask and scheduler_address(chosen.dask, insecure=chosen.insecure))


def unnamed_variables(
    document: CampaignDocument | None, options: Mapping[str, Any], decisive: Sequence[str]
) -> list[str]:
    """Of a new campaign, which has no `document` yet: the variables of make for those `decisive` options that were not
    given. One that goes on has none."""
    return [] if document else [name.upper() for name in decisive if options[name] is None]


def campaign_name(name: str | None) -> str:
    """`name` if it can be a folder's name, or one made of the time of day. Raises EyelevelError."""
    if name is None:
        return time.strftime("%Y%m%d-%H%M%S")
    if not name or name != Path(name).name or name.startswith("."):
        raise EyelevelError(f"a campaign is a folder in results/, and {name!r} cannot be its name")
    if len(os.fsencode(name)) > NAME_BYTES:
        raise EyelevelError(f"the campaign's name has more than {NAME_BYTES} bytes, as no folder's can: {name[:40]}…")
    return name


def document_of(folder: Path, study: str, command_of: Callable[[str], str]) -> CampaignDocument | None:
    """The document of the campaign of `study` (nothing: of pages) in `folder`, or None when there is none.

    `command_of` names the command of another study. Raises EyelevelError when the campaign is of another, or when the
    folder is one of something else.
    """
    require_no_others(folder)
    document = read_document(folder)
    if document and document.study_name != study:
        other = document.study_name or "campaign of pages"
        again = continuation(command_of(document.study_name), folder)
        raise EyelevelError(f"{folder.name} is a {other}; go on with it by: {again}; or name another with --campaign")
    return document


def continuation(command: str, folder: Path) -> str:
    """The command line that goes on with the campaign in `folder`."""
    if folder.parent == RESULTS:
        return f"make {command} CAMPAIGN={shlex.quote(folder.name)}"
    return shlex.join(["eyelevel", command, "--campaign", folder.name, "--results", str(folder.parent)])
