"""`eyelevel export`: write a site in a format that other tools read."""

from pathlib import Path

import click

from base.files import require_file, require_replaceable
from eyelevel.options import parameters_of
from record.formats import writable_formats
from record.names import require_site_name


@click.command(params=parameters_of("export"))
def main(name: str, form: str, into: Path | None) -> None:
    """Write SITE in a format that other tools read.

    Example: eyelevel export demo-news --as wacz --into demo-news.wacz
    """
    from record.collection import choose_site
    from record.layout import PAGE_SCRIPT

    chosen, into = writable_formats()[form], into or Path(f"{name}.{form}")
    require = require_file if chosen.ENDINGS else require_replaceable
    require(into, "--into names another place")
    site = choose_site(require_site_name(name))
    chosen.write(site, into)
    click.echo(f"written: {into}")
    if site.page_script is not None:
        click.echo(f"note: no format has a place for the page script: {site.folder / PAGE_SCRIPT}", err=True)
