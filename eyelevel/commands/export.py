"""`eyelevel export`: write a site in a format that other tools read."""

from pathlib import Path

import click

from record.formats import writable_formats
from record.names import site_folder

FORMATS = writable_formats()


@click.command()
@click.argument("name")
@click.argument("destination", type=click.Path(path_type=Path))
@click.option("--format", "form", type=click.Choice(sorted(FORMATS)), required=True, help="What to write.")
def main(name: str, destination: Path, form: str) -> None:
    """Write the site NAME to DESTINATION, in a format that other tools read.

    Example: eyelevel export demo-news demo-news.wacz --format wacz
    """
    from record.site import Site

    FORMATS[form].write(Site.load(site_folder(name)), destination)
