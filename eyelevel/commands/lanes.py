"""`eyelevel lanes`: find out how many lanes this machine takes, and keep the number."""

import json

import click

from base.privileges import require_browsing
from base.terminal import print_line
from eyelevel.arguments import begin
from eyelevel.options import parameters_of


@click.command(params=parameters_of("lanes"))
def main(browser: str, as_json: bool) -> None:
    """Measure how many runs this machine can make at once without that they disturb each other.

    It takes minutes on a small machine and up to hours on a large one. The number is kept: `--lanes auto` of what
    measures, such as `eyelevel campaign`, takes it.

    Example: eyelevel lanes
    """
    require_browsing("measuring")
    begin("preparing to measure lanes")

    from rich.console import Console

    from eyelevel.lanes import keep_calibration
    from measure.calibration.trial import calibrated_lanes
    from measure.host.exclusive import measuring_alone

    console = Console(highlight=False, stderr=as_json)
    with measuring_alone("measuring lanes"):
        lanes = calibrated_lanes(browser, lambda text: print_line(console, text))
    keep_calibration(lanes, browser)
    if as_json:
        click.echo(json.dumps(lanes.record()))
    else:
        click.echo(f"LANES={lanes.count}")
