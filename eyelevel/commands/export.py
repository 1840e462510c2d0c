"""`eyelevel export`: write a site in a format that other tools read."""

from pathlib import Path

import click

from eyelevel.options import parameters_of
from record.formats import writable_formats
from record.names import site_folder


@click.command(params=parameters_of("export"))
def main(name: str, form: str, into: Path | None) -> None:
    """Write SITE in a format that other tools read.

    Example: eyelevel export demo-news --as wacz --into demo-news.wacz
    """
    from record.site import Site

    writable_formats()[form].write(Site.load(site_folder(name)), into or Path(f"{name}.{form}"))
