"""`eyelevel networks`: show what each network is, where its numbers come from, and how it changes over time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from base.ownership import give_to_caller
from base.places import RESULTS
from base.terminal import print_line
from eyelevel.arguments import begin
from eyelevel.names import require_known_networks
from eyelevel.options import parameters_of

if TYPE_CHECKING:
    from rich.table import Table

    from tuning.networks import Network
    from tuning.settings import Catalogue

DRAWING = "networks"


def listed(known: Catalogue[Network]) -> list[Network]:
    """The networks that are listed if none was named: the first of each grid, and all outside grids."""
    from tuning.settings import ALL

    grids = {name: group for group, names in known.groups.items() if group != ALL for name in names}
    return [network for name, network in known.items() if name not in grids or known.groups[grids[name]][0] == name]


def table(chosen: list[Network], known: Catalogue[Network]) -> Table:
    """A table of the networks, one row each."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    from analysis.networks import further
    from analysis.text import NOTHING
    from base.structure import unstructured
    from tuning.impairments.contract import DOWN, UP
    from tuning.settings import ALL

    rows = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    rows.add_column("network", no_wrap=True)
    for heading in ("up\nMbit/s", "down\nMbit/s", "min. RTT\nms", "loss\n%", "queue up\nms", "queue down\nms"):
        rows.add_column(heading, justify="right")
    rows.add_column("further")
    grids = {names[0]: len(names) for group, names in known.groups.items() if group != ALL}
    for network in chosen:
        more = f"(one of {grids[network.name]})" if network.name in grids else ""
        rates = (network.up_mbps, network.down_mbps)
        numbers = [NOTHING if mbps is None else f"{mbps:.4g}" for mbps in rates]
        numbers += [
            f"{network.min_rtt_ms:g}",
            f"{100 * network.loss:.3g}",
            *(_wait(network, way) for way in (UP, DOWN)),
        ]
        words = [*further(unstructured(network)), *([more] if more else [])]
        rows.add_row(escape(network.name), *numbers, escape("; ".join(words)))
    return rows


def _wait(network: Network, direction: str) -> str:
    """The longest time that a packet may wait in the link's queue of a direction."""
    from analysis.text import NOTHING

    queue, mbps = network.queue_of(direction), network.rate_of(direction)
    wait_ms = queue and mbps and queue.longest_wait_ms(mbps, network.min_rtt_ms)
    return f"{wait_ms:.4g}" if wait_ms else NOTHING


def sources(chosen: list[Network], said: Mapping[str, str]) -> list[str]:
    """One line for each network: the source of its numbers."""
    return [f"{network.name}: {said[network.name]}" for network in chosen if network.name in said]


@click.command(params=parameters_of("networks"))
def main(net: str | None, seconds: float, into: Path) -> None:
    """List the networks and the sources of their numbers, and draw their rates and round-trip times over time.

    Example: eyelevel networks --net lte,starlink
    """
    require_known_networks(net)
    begin("reading networks")

    from rich.console import Console

    from analysis.figures import networks as figure
    from analysis.figures.style import save
    from tuning import networks
    from tuning.settings import choose

    known = networks.load()
    chosen = choose("network", net, known) if net else listed(known)
    console = Console(highlight=False)
    console.print(table(chosen, known))
    for line in sources(chosen, known.sources):
        print_line(console, line)
    into.mkdir(parents=True, exist_ok=True)
    save(figure.draw(chosen, seconds), into, DRAWING)
    give_to_caller(into, RESULTS)
    print_line(console, f"Rates and round-trip times over time: {into / DRAWING}.png")
