"""`eyelevel verify`: compare the files of a package with their checksums."""

from pathlib import Path

import click

from base.errors import EyelevelError
from base.text import printable
from base.words import plural
from dataset.package import checksums, differences
from eyelevel.options import parameters_of


@click.command(params=parameters_of("verify"))
def main(folder: Path) -> None:
    """Compare the files of the package FOLDER with the checksums that were written with it (SHA-256).

    Exit status: 0 if all files are as written; 1 if one is changed, missing or added, or FOLDER is not a package; 2 if
    the command line is wrong.

    Example: eyelevel verify data/reference
    """
    wrong = differences(folder)
    for name, what in wrong.items():
        click.echo(f"{what}: {printable(name)}")
    count = plural("file", len(checksums(folder)))
    if wrong:
        raise EyelevelError(f"{folder}: {plural('difference', len(wrong))} from the {count} that were written")
    click.echo(f"{folder}: {count}, all as written")
