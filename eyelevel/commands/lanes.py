"""`eyelevel lanes`: measure how many runs this machine can make at once, and keep the number."""

import click

from base.privileges import require_browsing
from base.terminal import print_json, print_line
from eyelevel.arguments import begin
from eyelevel.names import require_known_networks
from eyelevel.next_step import suggest
from eyelevel.options import parameters_of


@click.command(params=parameters_of("lanes"))
def main(browser: str, net: str | None, sites: str, as_json: bool) -> None:
    """Measure how many runs this machine can make at once without one disturbing another: on separate cores and, for
    the networks of --net, on shared cores.

    It takes minutes on a small machine and up to hours on a large one. The numbers are kept; `--lanes auto` uses them.

    Example: eyelevel lanes --net da2gc,mss --sites imgur,www.yelp.com
    """
    require_browsing("measuring")
    require_known_networks(net)
    begin("preparing to measure lanes")

    from rich.console import Console

    from eyelevel.lanes import keep_calibration, measured_lanes, with_sharing
    from measure.host.exclusive import measuring_alone
    from record.collection import load_site
    from tuning import networks
    from tuning.settings import choose

    console = Console(highlight=False, stderr=as_json)
    chosen = choose("network", net, networks.load()) if net else ()
    pages = [load_site(name) for name in sites.split(",")]
    with measuring_alone():
        lanes = measured_lanes(browser, lambda text: print_line(console, text), anew=not chosen)
        for network in chosen:
            lanes = with_sharing(lanes, network, pages, browser, lambda text: print_line(console, text))
            keep_calibration(lanes, browser)
    if as_json:
        print_json(lanes.record())
    else:
        click.echo(f"LANES={lanes.value()}")
        suggest("make campaign LANES=auto")
