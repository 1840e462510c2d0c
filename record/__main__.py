"""`python -m record`: put sites into `sites/`."""

import re
from dataclasses import replace
from pathlib import Path

import click

from eyelevel.errors import EyelevelError, reports_errors
from record.formats import Format, WritableFormat, har, mahimahi, responses, warc
from record.http1 import MalformedMessage
from record.names import place
from record.options import keep_cookies_option
from record.recorder.command import record
from record.site import Recording, Site, write_site
from record.summary import tell
from record.urls import normal_url

FORMATS: tuple[Format, ...] = (mahimahi, warc, har, responses)
WRITABLE: dict[str, WritableFormat] = {"har": har, "mahimahi": mahimahi}


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def cli() -> None:
    """Record sites, import recorded ones, or generate the demo sites."""


cli.add_command(record)


@cli.command("import")
@click.argument("source", type=click.Path(path_type=Path))
@click.option("--name", help="Name of the site; the source's own name unless given.")
@click.option("--url", help="The page to start from; found in the recording unless given.")
@keep_cookies_option
def import_site(source: Path, name: str | None, url: str | None, keep_cookies: bool) -> None:
    """Import the recording SOURCE as a site.

    It may be a folder of Mahimahi's save.* files, a folder of raw responses, a WARC, or a HAR with bodies.

    Example: python -m record import ../recordings/www.yelp.com
    """
    folder = place(name or _name_of(source))
    recording = read_recording(source, keep_cookies=keep_cookies)
    if url:
        recording = replace(recording, url=_among(recording, url))
    tell(write_site(recording, folder))


@cli.command()
@click.argument("name")
@click.argument("destination", type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(sorted(WRITABLE)), required=True, help="What to write.")
def export(name: str, destination: Path, form: str) -> None:
    """Hand on the site NAME as DESTINATION, in a format that other tools read.

    Example: python -m record export demo-news demo-news.har --format har
    """
    WRITABLE[form].write(Site.load(place(name)), destination)


@cli.command()
@click.argument("names", nargs=-1)
def demo(names: tuple[str, ...]) -> None:
    """Generate the demo sites NAMES, all of them unless given.

    Example: python -m record demo demo-news
    """
    # Imported here, since drawing needs numpy, which takes a while to load.
    from record.demo import DEMO_SITES, generate

    for name in names or DEMO_SITES:
        if name not in DEMO_SITES:
            raise EyelevelError(f"there is no demo site {name}; there are {', '.join(DEMO_SITES)}")
        tell(write_site(generate(name), place(name)))


def read_recording(source: Path, *, keep_cookies: bool = False) -> Recording:
    """Read `source` with the importer that recognises it. Raises EyelevelError."""
    if not source.exists():
        raise EyelevelError(f"there is no recording at {source}")
    for known in FORMATS:
        if known.recognises(source):
            return known.read(source, keep_cookies=keep_cookies)
    raise EyelevelError(
        f"{source} is no recording that can be imported: give a folder of Mahimahi's save.* files or of raw "
        "responses, a .warc, or a .har"
    )


def _among(recording: Recording, url: str) -> str:
    """The recorded URL that `url` means. Raises EyelevelError."""
    try:
        normal = normal_url(url).replace("http://", "https://", 1)
    except MalformedMessage as error:
        raise EyelevelError(f"--url: {error}") from None
    pages = [exchange.url for exchange in recording.exchanges if exchange.method == "GET"]
    found = next((page for page in pages if normal in (page, page.removesuffix("/"))), None)
    if found is None:
        raise EyelevelError(f"--url: {url} was not recorded; pages begin with {recording.url}")
    return found


def _name_of(source: Path) -> str:
    """The source's name without what tells its format."""
    return re.sub(r"\.(warc|warc\.gz|har)$", "", source.resolve().name)


if __name__ == "__main__":
    reports_errors(cli)()
