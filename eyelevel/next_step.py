"""The next command: the last line of a command, and the command that resumes a campaign.

Loads nothing that takes long.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from base.places import RESULTS
from base.text import printable
from dataset.package import is_package
from dataset.table import read_rows
from tuning.settings import USER_FOLDER

if TYPE_CHECKING:
    from analysis.report.conclusion import Conclusion


def make_line(target: str, given: Mapping[str, str]) -> str:
    """The command line of make that runs `target` with these variables."""
    return " ".join(["make", target, *(f"{name}={shlex.quote(text)}" for name, text in given.items())])


def continuation(command: str, folder: Path, **variables: str) -> str:
    """The command line that resumes the campaign in `folder`, with these further variables."""
    results = {} if folder.parent == RESULTS else {"RESULTS": str(folder.parent)}
    tuning = {"TUNING": os.environ[USER_FOLDER]} if os.environ.get(USER_FOLDER) else {}
    return make_line(command, {"CAMPAIGN": folder.name, **variables, **results, **tuning})


def suggest(command: str) -> None:
    """Print on standard error the `command` that mostly follows. Names in it may be untrusted."""
    click.echo(f"next: {printable(command)}", err=True)


def after_campaign(folder: Path) -> str:
    """The command that follows one that has measured the campaign in `folder`. Raises EyelevelError."""
    if not any(row.valid for row in read_rows(folder)):
        return make_line("status", {"CAMPAIGN": _name(folder)})
    return make_line("report", {"CAMPAIGN": _name(folder)})


def after_report(folder: Path, answer: Conclusion | None) -> str:
    """The command that follows one that has reported the campaign in `folder`; `answer` is None for a study."""
    if is_package(folder):
        return make_line("campaign", {"PACKAGE": str(folder)})
    if answer and answer.runs:
        return continuation("campaign", folder, RUNS=str(answer.runs))
    if answer and answer.waterfall and (folder / "runs").is_dir():
        return make_line("waterfall", {"CAMPAIGN": _name(folder), **answer.waterfall})
    return make_line("package", {"CAMPAIGN": _name(folder)})


def _name(folder: Path) -> str:
    """The campaign in `folder` as a command takes it: its name in results/, or its path."""
    return folder.name if folder.parent == RESULTS else str(folder)
