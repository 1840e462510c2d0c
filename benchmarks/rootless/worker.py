"""`python -m benchmarks.rootless.worker`: one measurement by the current user; the last line is its result as JSON."""

import json
import tempfile
from pathlib import Path

import click

from base.errors import EyelevelError, reports_errors
from base.namespaces import namespaced
from base.places import tool
from benchmarks.shells.measure import ADD_SERVER, round_trip_times_ms
from dataset.table import Run
from measure.campaign.method import PAGES
from measure.campaign.single_load import measure_one
from measure.host.timekeeping import timekeeping
from measure.run.setting import Setting
from record import collection
from tuning import networks, protocols
from tuning.settings import choose_one

REPEATS = 3


@click.group()
def main() -> None:
    """Measure once."""


@main.command()
@click.argument("delay_ms", type=float)
@click.argument("count", type=int)
def round_trips(delay_ms: float, count: int) -> None:
    """Print the times (ms) of COUNT round trips through `mm-net --delay DELAY_MS`, and how the network kept time."""
    with_server = ("sh", "-c", f'{ADD_SERVER} && exec "$@"', "sh")
    prefix = (*map(str, namespaced("net")), *with_server, str(tool("mm-net")), "--delay", f"{delay_ms:g}", "--")
    click.echo(json.dumps({"timekeeping": timekeeping(), "ms": round_trip_times_ms(prefix, count)}))


@main.command()
@click.argument("site")
@click.argument("network")
@click.argument("protocol")
def load(site: str, network: str, protocol: str) -> None:
    """Print the page load time and Speed Index (ms) of one load that counts."""
    setting = Setting(
        collection.load_site(site),
        choose_one("network", network, networks.load()),
        choose_one("protocol", protocol, protocols.load()),
    )
    with tempfile.TemporaryDirectory(prefix="eyelevel-benchmark-") as folder:
        row = measure_one(Run(site, network, protocol, 1), setting, PAGES, Path(folder), REPEATS)
    if not row.valid:
        raise EyelevelError(f"a load of {site} on {network} over {protocol} does not count: {row.reason}")
    click.echo(json.dumps({metric: row.metrics[metric] for metric in ("plt", "si")}))


if __name__ == "__main__":
    reports_errors(main)()
