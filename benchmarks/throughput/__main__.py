"""`python -m benchmarks.throughput`: runs per hour on each network, one at a time and sharing processors, next to stock
Browsertime.

All load the same pages in the same replay, in turn. A run counts only if it is valid.
"""

import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import click
from rich.console import Console

from base.errors import EyelevelError, reports_errors
from benchmarks.campaign.__main__ import stock
from browsers.browsertime.configuration import QUIET_MS
from dataset.table import read_rows
from eyelevel.lanes import kept_lanes, requested_lanes
from films.policy import FilmPolicy
from measure.campaign.campaign import Campaign
from measure.campaign.engine import measure
from measure.campaign.lanes import measure_in_lanes
from measure.campaign.place import measure_here
from measure.campaign.progress import ProgressDisplay
from measure.host.exclusive import measuring_alone
from measure.host.lanes import ONE_LANE, Lanes
from measure.run.setting import Loading, Setting
from record.collection import load_site
from record.site import Site
from tuning import networks, protocols
from tuning.defaults import DEFAULT_BROWSER
from tuning.networks import Network
from tuning.settings import choose

PROTOCOLS = ("tcp+", "quic")
HOUR_S = 3600
STOCK_RUNS = 3


def runs_per_hour(network: Network, sites: Sequence[Site], rounds: int, lanes: Lanes) -> float:
    """Measure so many `rounds` of blocks as a campaign does; returns valid runs per hour. Raises EyelevelError."""
    known = protocols.load()
    with tempfile.TemporaryDirectory(prefix="eyelevel-benchmark-") as temporary:
        campaign = Campaign(
            Path(temporary) / "campaign",
            {site.name: site for site in sites},
            {network.name: network},
            {name: known[name] for name in PROTOCOLS},
            runs=rounds,
            seed=1,
            films=FilmPolicy("none"),
            lanes=lanes,
        )
        display = partial(ProgressDisplay, Console(stderr=True), plain=True, lanes=lanes)
        began_s = time.monotonic()
        measure(campaign, display, measure_here if lanes.is_one else measure_in_lanes)
        took_s = time.monotonic() - began_s
        valid = sum(row.valid for row in read_rows(campaign.folder))
    if not valid:
        raise EyelevelError(f"no run on {network.name} was valid")
    return HOUR_S * valid / took_s


def stock_per_hour(network: Network, site: Site) -> float:
    """Runs of stock Browsertime per hour, each with the page's load and our quiet time. Raises EyelevelError."""
    setting = Setting(site, network, protocols.load()["tcp+"], Loading())
    began_s = time.monotonic()
    stock(site, setting, STOCK_RUNS)
    return HOUR_S * STOCK_RUNS / (time.monotonic() - began_s)


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--net", default="dsl,lte,da2gc,mss", show_default=True, help="Networks (a,b).")
@click.option("--sites", default="demo-news", show_default=True, help="Sites (a,b); stock loads the first.")
@click.option("--lanes", help="Loads at once, such as 1,mss:6; default: what 'eyelevel lanes' has found.")
@click.option("--rounds", default=12, show_default=True, help="Blocks of each page, network and way.")
def main(net: str, sites: str, lanes: str | None, rounds: int) -> None:
    """Print runs per hour on each network: one run at a time, sharing processors, and stock Browsertime.

    Example: python -m benchmarks.throughput --net mss --lanes mss:6
    """
    shared = requested_lanes(lanes) if lanes else kept_lanes(DEFAULT_BROWSER) or ONE_LANE
    pages = [load_site(name) for name in sites.split(",")]
    with measuring_alone():
        for network in choose("network", net, networks.load()):
            alone = runs_per_hour(network, pages, rounds, ONE_LANE)
            number = shared.at_once.get(network.name, 1)
            several = (
                runs_per_hour(network, pages, rounds, Lanes(at_once={network.name: number})) if number > 1 else None
            )
            stocks = stock_per_hour(network, pages[0])
            quiet_s = (network.quiet_ms or QUIET_MS) / 1000
            text = f"{network.name}: {alone:.0f} runs an hour, one at a time ({quiet_s:g} s of quiet each)"
            text += f"; {several:.0f} with {number} at once, {several / alone:.2f} times as many" if several else ""
            click.echo(f"{text}; stock Browsertime {stocks:.0f}, so ours are {(several or alone) / stocks:.1f} times")


if __name__ == "__main__":
    reports_errors(main)()
