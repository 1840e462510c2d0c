"""Arguments that several commands share, and how a command begins. Imports no measuring code."""

from difflib import get_close_matches
from pathlib import Path

import click

from base.errors import EyelevelError
from base.places import RESULTS
from dataset.table import DOCUMENT

# How similar (difflib) two names must be before one counts as a mistyping of the other: lte-qiuc and lte-quic are, lte
# and dsl are not.
ALIKE = 0.75


def campaign_folder(campaign: str, results: Path = RESULTS) -> Path:
    """The folder that `campaign` names: a folder in `results` by its name, or any folder by its path. Raises
    EyelevelError."""
    for folder in (results / campaign, Path(campaign)):
        if folder.is_dir():
            return folder
    similar = similar_campaign(results / campaign)
    raise EyelevelError(
        f"there is no campaign {campaign}: neither {results / campaign} nor {campaign} is a folder"
        f"{f'; there is a campaign {similar}' if similar else ''}"
    )


def similar_campaign(folder: Path) -> str:
    """The name of the campaign next to `folder` that most resembles the name of `folder`, in case it was mistyped; ""
    if none does."""
    others = [file.parent.name for file in folder.parent.glob(f"*/{DOCUMENT}") if file.parent != folder]
    return next(iter(get_close_matches(folder.name, others, n=1, cutoff=ALIKE)), "")


def begin(text: str) -> None:
    """Announce on standard error what a command is about to do, before it loads libraries, which takes a second."""
    click.echo(text, err=True)
