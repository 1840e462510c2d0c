"""`eyelevel demo`: generate the demo sites."""

import click

from base.errors import EyelevelError
from eyelevel.options import parameters_of
from record.names import site_folder


@click.command(params=parameters_of("demo"))
def main(names: tuple[str, ...]) -> None:
    """Generate the named demo sites; by default all.

    Example: eyelevel demo demo-news
    """
    from record.demo import DEMO_SITES, generate
    from record.site import write_site
    from record.summary import summary

    for name in names or DEMO_SITES:
        if name not in DEMO_SITES:
            raise EyelevelError(f"there is no demo site {name}; there are {', '.join(DEMO_SITES)}")
        click.echo(summary(write_site(generate(name), site_folder(name))))
