"""`eyelevel lanes`: find out how many lanes this machine takes."""

import json

import click

from base.privileges import require_browsing
from eyelevel.arguments import begin
from eyelevel.options import parameters_of


@click.command(params=parameters_of("lanes"))
def main(browser: str, as_json: bool) -> None:
    """Measure how many runs this machine can make at once without that they disturb each other.

    It takes minutes on a small machine and up to hours on a large one. `--lanes auto` of `eyelevel campaign` does the
    same before it begins.

    Example: eyelevel lanes
    """
    require_browsing("measuring")
    begin("preparing to measure lanes")

    from rich.console import Console

    from eyelevel.lanes import measured_lanes
    from measure.host.exclusive import measuring_alone

    with measuring_alone("measuring lanes"):
        lanes = measured_lanes(Console(highlight=False, stderr=as_json), browser)
    if as_json:
        click.echo(json.dumps(lanes.record()))
    else:
        click.echo(f"LANES={lanes.count}")
