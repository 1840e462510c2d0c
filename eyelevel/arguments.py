"""Arguments that several commands share, and how a command begins. Imports no measuring code."""

from pathlib import Path

import click

from base.errors import EyelevelError
from base.places import RESULTS
from base.text import nearest
from dataset.table import DOCUMENT

# How much (difflib) the name of a new campaign must resemble another's before it counts as a mistyping of that:
# lte-qiuc and lte-quic do, lte and dsl do not.
ALIKE = 0.75


def campaign_folder(campaign: str, results: Path = RESULTS) -> Path:
    """The folder that `campaign` names: a folder in `results` by its name, or any folder by its path. Raises
    EyelevelError."""
    folders = (results / campaign, Path(campaign))
    for folder in folders:
        if folder.is_dir():
            return folder
    near = nearest(folders[0].name, (name for folder in folders for name in campaigns_in(folder.parent)))
    meant = f"; did you mean {near}?" if near else "; name a folder in results/, or give a path"
    raise EyelevelError(f"there is no campaign {campaign}{meant} (neither {folders[0]} nor {folders[1]} is a folder)")


def similar_campaign(folder: Path) -> str | None:
    """The name of the campaign next to `folder` that most resembles the name of `folder`, in case it was mistyped; None
    if none does."""
    return nearest(folder.name, (name for name in campaigns_in(folder.parent) if name != folder.name), ALIKE)


def campaigns_in(results: Path) -> list[str]:
    """The names of the campaigns in the folder `results`."""
    return sorted(file.parent.name for file in results.glob(f"*/{DOCUMENT}"))


def begin(text: str) -> None:
    """Announce on standard error what a command is about to do, before it loads libraries, which takes a second."""
    click.echo(text, err=True)
