"""What a person is told of a site."""

import click

from record.site import Site


def tell(site: Site) -> None:
    """Say in a few lines what was stored, and what was not."""
    total = sum(exchange.bytes for exchange in site.exchanges)
    counts = f"{len(site.exchanges)} exchanges of {len(site.addresses)} hosts on {len(site.servers)} servers"
    click.echo(f"{site.name}: {counts}, {total / 1e6:.2f} MB, starts at {site.url}")
    for reason in site.skipped:
        click.echo(f"  left out: {reason[:160]}")
