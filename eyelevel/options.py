"""Arguments and options that several commands take, and what they mean."""

from pathlib import Path

import click

from base.errors import EyelevelError
from base.places import RESULTS

PATH = click.Path(path_type=Path)

campaign_argument = click.argument("campaign")
keep_cookies = click.option(
    "--keep-cookies",
    is_flag=True,
    help="Keep the values of cookies that servers set, and their header fields with credentials, which some pages' "
    "scripts need. Without it cookies get stand-ins of the same length, and such fields are taken off. URLs and bodies "
    "stay as they were sent in either case: hand on only pages that were seen without login.",
)


def campaign_folder(campaign: str) -> Path:
    """The folder that `campaign` names: one of `results/`, or any path of one. Raises EyelevelError."""
    for folder in (RESULTS / campaign, Path(campaign)):
        if folder.is_dir():
            return folder
    raise EyelevelError(f"there is no campaign {campaign}: neither {RESULTS / campaign} nor {campaign} is a folder")
