"""`eyelevel import`: make a site from a recording in another format."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from base.errors import EyelevelError
from base.ownership import give_to_caller
from base.places import SITES
from eyelevel.next_step import make_line, suggest
from eyelevel.options import parameters_of
from record import formats
from record.names import site_folder

if TYPE_CHECKING:
    from record.site import Site

HELP = f"""Import the recording FROM as a site.

FROM is {formats.descriptions()}.

Example: eyelevel import ../recordings/www.yelp.com
"""


@click.command(help=HELP, params=parameters_of("import"))
def main(source: Path, name: str | None, url: str | None, keep_cookies: bool, allow_changed: bool) -> None:
    """Import the recording `source` as a site."""
    from record.provenance import provenance
    from record.summary import summary

    folder = site_folder(name or formats.name_of(source))
    if folder.exists():
        # Campaigns may rest on that recording, which cannot be made again.
        raise EyelevelError(f"{folder} exists; name the new site with NAME=, or remove it")
    site = import_recording(source, folder, url, keep_cookies=keep_cookies, allow_changed=allow_changed)
    give_to_caller(folder, SITES)
    click.echo("\n".join([summary(site), *(f"  {text}" for text in provenance(site))]))
    suggest(make_line("answer", {"SITE": site.name}))


def import_recording(
    source: Path, folder: Path, url: str | None = None, *, keep_cookies: bool = False, allow_changed: bool = False
) -> "Site":
    """Write the recording `source` into `folder` as a site whose page is `url`, if given. Raises EyelevelError."""
    from record.assemble import beginning_at
    from record.site import write_site

    recording = formats.read_recording(source, keep_cookies=keep_cookies, url=url, allow_changed=allow_changed)
    return write_site(beginning_at(recording, url) if url else recording, folder)
