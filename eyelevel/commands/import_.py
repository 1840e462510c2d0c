"""`eyelevel import`: make a site of a recording in another format."""

from dataclasses import replace
from pathlib import Path

import click

from eyelevel.options import keep_cookies
from record import formats
from record.names import site_folder

HELP = f"""Import the recording SOURCE as a site.

It may be {formats.descriptions()}.

Example: eyelevel import ../recordings/www.yelp.com
"""


@click.command(help=HELP)
@click.argument("source", type=click.Path(path_type=Path))
@click.option("--name", help="Name of the site; the source's name unless given.")
@click.option(
    "--url",
    help="The page to start from; found in the recording unless given. Of an HTTP archive (HAR) of several pages, what "
    "this one asked for is imported, and nothing else; unless given, the first.",
)
@keep_cookies
def main(source: Path, name: str | None, url: str | None, keep_cookies: bool) -> None:
    """Import the recording `source` as a site."""
    from record.assemble import chosen_page
    from record.site import write_site
    from record.summary import summary

    folder = site_folder(name or formats.name_of(source))
    recording = formats.read_recording(source, keep_cookies=keep_cookies, url=url)
    if url:
        page = chosen_page(recording.exchanges, url)
        # What the archive says of a load is of the page that it begins with.
        recording = replace(recording, url=page, live=recording.live if page == recording.url else None)
    click.echo(summary(write_site(recording, folder)))
