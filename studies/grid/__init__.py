"""Grids: page load times of generated pages over a grid of networks."""

import click

from studies.grid.defaults import PRESETS
from studies.study import Study, late

STUDY = Study(
    name="grid",
    command="grid",
    title="measure generated pages over a grid of networks",
    help="""Measure page load times over a grid of generated pages and networks.

    Values are separated by commas or blanks. --net, --proto and --runs stand in for those of the preset. A grid that
    exists goes on where it was.

    Example: eyelevel grid --preset longlook --net longlook-10mbps-62ms-0loss --budget 60m
    """,
    campaign=late("studies.grid.measure:measurement"),
    section=late("studies.grid.section:section"),
    options=(
        click.Option(["--preset"], type=click.Choice(PRESETS), help="Which grid; that of the campaign if it exists."),
        click.Option(["--counts"], help="Other numbers of objects, where the grid varies them."),
        click.Option(["--sizes"], help="Other sizes of objects (100B, 10KB), where the grid varies them."),
        click.Option(["--spread"], help="Over how many servers the objects of a page are spread (1,4)."),
        click.Option(["--servers"], help="Further servers to measure beside those of the protocols (caddy,quinn)."),
        click.Option(["--limit"], type=click.FloatRange(min=1), help="Seconds that a load may take."),
        click.Option(["--budget"], help="How long all may take (90s, 60m, 2h15m): cells that do not fit are left out."),
    ),
    chooses_sites=False,
    decisive=("net", "proto"),
    validates=True,
)
