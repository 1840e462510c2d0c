"""`eyelevel export`: hand on a site in a format that other tools read."""

from pathlib import Path

import click

from record.formats.reading import WRITABLE
from record.names import place
from record.site import Site


@click.command()
@click.argument("name")
@click.argument("destination", type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(sorted(WRITABLE)), required=True, help="What to write.")
def main(name: str, destination: Path, form: str) -> None:
    """Hand on the site NAME as DESTINATION, in a format that other tools read.

    Example: eyelevel export demo-news demo-news.har --format har
    """
    WRITABLE[form].write(Site.load(place(name)), destination)
