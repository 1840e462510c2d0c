"""Grids: page load times of generated pages over a grid of networks."""

import click

from base.late import late
from base.options import Option
from studies.grid.defaults import PRESETS
from studies.study import Study

STUDY = Study(
    name="grid",
    command="grid",
    title="measure load times of generated pages over a grid of networks",
    help="""Measure page load times over a grid of generated pages and networks.

    Commas or blanks separate values. --net, --proto and --runs replace those of the preset. An existing grid is
    resumed.

    Example: eyelevel grid --preset longlook --net longlook-10mbps-62ms-0loss --budget 60m
    """,
    campaign=late("studies.grid.measure:measurement"),
    pages=late("studies.grid.pages:site"),
    section=late("studies.grid.section:section"),
    options=(
        Option("--preset", "The grid to measure.", choices=PRESETS, usual="the campaign's"),
        Option("--counts", "Other numbers of objects (1,10), if the grid varies them."),
        Option("--sizes", "Other sizes of objects (100B, 10KB), if the grid varies them."),
        Option("--spread", "Numbers of servers that share the objects of a page (1,4)."),
        Option("--servers", "Additional servers to measure (caddy,quinn)."),
        Option("--limit", "Time limit of a load (s).", type=click.FloatRange(min=1)),
        Option("--budget", "Time limit (90s, 60m, 2h15m); cells that do not fit are skipped."),
    ),
    usual={**dict.fromkeys(("--net", "--proto", "--runs"), "the preset's"), "--campaign": "the preset's name"},
    chooses_sites=False,
    decisive=("net", "proto"),
    validates=True,
)
