"""`eyelevel import`: make a site of a recording in another format."""

from dataclasses import replace
from pathlib import Path

import click

from base.errors import EyelevelError
from eyelevel.options import keep_cookies
from record import formats
from record.http1 import MalformedMessage
from record.names import site_folder
from record.site import Recording, write_site
from record.summary import summary
from record.urls import normal_url

HELP = f"""Import the recording SOURCE as a site.

It may be {formats.descriptions()}.

Example: eyelevel import ../recordings/www.yelp.com
"""


@click.command(help=HELP)
@click.argument("source", type=click.Path(path_type=Path))
@click.option("--name", help="Name of the site; the source's name unless given.")
@click.option("--url", help="The page to start from; found in the recording unless given.")
@keep_cookies
def main(source: Path, name: str | None, url: str | None, keep_cookies: bool) -> None:
    """Import the recording `source` as a site."""
    folder = site_folder(name or formats.name_of(source))
    recording = formats.read_recording(source, keep_cookies=keep_cookies)
    if url:
        recording = replace(recording, url=_recorded_page(recording, url))
    click.echo(summary(write_site(recording, folder)))


def _recorded_page(recording: Recording, url: str) -> str:
    """The recorded URL that `url` means. Raises EyelevelError."""
    try:
        normal = normal_url(url).replace("http://", "https://", 1)
    except MalformedMessage as error:
        raise EyelevelError(f"--url: {error}") from None
    pages = [exchange.url for exchange in recording.exchanges if exchange.method == "GET"]
    match = next((page for page in pages if normal in (page, page.removesuffix("/"))), None)
    if match is None:
        raise EyelevelError(f"--url: {url} was not recorded; pages begin with {recording.url}")
    return match
