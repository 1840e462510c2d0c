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
    from record.layout import PAGE_SCRIPT
    from record.site import Site

    site = Site.load(site_folder(name))
    writable_formats()[form].write(site, into or Path(f"{name}.{form}"))
    if site.page_script is not None:
        click.echo(f"note: no format has a place for the page script, {site.folder / PAGE_SCRIPT}", err=True)
