"""Grids: page load times of generated pages over a grid of networks."""

import click

from base.late import late
from base.options import Option
from studies.grid.defaults import PRESETS
from studies.study import Study

STUDY = Study(
    name="grid",
    command="grid",
    title="measure generated pages over a grid of networks",
    help="""Measure page load times over a grid of generated pages and networks.

    Values are separated by commas or blanks. --net, --proto and --runs stand in for those of the preset. A grid that
    exists is resumed.

    Example: eyelevel grid --preset longlook --net longlook-10mbps-62ms-0loss --budget 60m
    """,
    campaign=late("studies.grid.measure:measurement"),
    pages=late("studies.grid.pages:site"),
    section=late("studies.grid.section:section"),
    options=(
        Option("--preset", "The grid.", choices=PRESETS, usual="the campaign's"),
        Option("--counts", "Other numbers of objects (1,10), where the grid varies them."),
        Option("--sizes", "Other sizes of objects (100B, 10KB), where the grid varies them."),
        Option("--spread", "Numbers of servers over which the objects of a page are spread (1,4)."),
        Option("--servers", "Further servers to measure (caddy,quinn), besides those of the protocols."),
        Option("--limit", "Time limit of a load (s).", type=click.FloatRange(min=1)),
        Option("--budget", "Time limit (90s, 60m, 2h15m); cells that do not fit are left out."),
    ),
    chooses_sites=False,
    decisive=("net", "proto"),
    validates=True,
)
