"""`eyelevel demo`: generate the demo sites."""

import click

from base.errors import Misuse
from base.text import unknown
from eyelevel.next_step import make_line, suggest
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
            raise Misuse(unknown("demo site", name, DEMO_SITES))
        click.echo(summary(write_site(generate(name), site_folder(name))))
    suggest(make_line("campaign", {"SITES": ",".join(names or DEMO_SITES), "NET": "lte", "PROTO": "tcp,quic"}))
