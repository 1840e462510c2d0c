"""`eyelevel lanes`: find out how many lanes this machine takes."""

import json

import click

from base.privileges import require_browsing
from browsers.registry import all_browsers
from eyelevel.arguments import begin
from tuning.defaults import DEFAULT_BROWSER


@click.command()
@click.option(
    "--browser",
    type=click.Choice(list(all_browsers())),
    default=DEFAULT_BROWSER,
    help=f"The browser ({DEFAULT_BROWSER}).",
)
@click.option("--json", "as_json", is_flag=True, help="As JSON, with all that was measured.")
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
