"""`eyelevel networks`: show what each network is, where its numbers come from, and how it changes over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from base.ownership import give_to_caller
from base.places import RESULTS
from base.terminal import plain_table, print_json, print_line, terminal
from eyelevel.arguments import begin
from eyelevel.names import require_known_networks
from eyelevel.next_step import suggest
from eyelevel.options import parameters_of

if TYPE_CHECKING:
    from rich.table import Table

    from tuning.networks import Network
    from tuning.settings import Catalogue

DRAWING = "networks"


def listed(known: Catalogue[Network]) -> dict[str, list[Network]]:
    """The networks by the names that are listed: each network by its own, those of a grid by the grid's name."""
    from tuning.settings import ALL

    grids = {name: group for group, names in known.groups.items() if group != ALL for name in names}
    groups: dict[str, list[Network]] = {}
    for name, network in known.items():
        groups.setdefault(grids.get(name, name), []).append(network)
    return groups


def table(groups: dict[str, list[Network]]) -> Table:
    """A table with one line for each group of networks. A number that differs in a group is a range."""
    from rich.text import Text

    from analysis.networks import further
    from base.structure import unstructured
    from tuning.impairments.contract import DOWN, UP

    rows = plain_table()
    rows.add_column("network", no_wrap=True)
    for heading in ("up\nMbit/s", "down\nMbit/s", "RTT\nms", "loss\n%", "queue\nup ms", "queue\ndown ms"):
        rows.add_column(heading, justify="right", no_wrap=True)
    rows.add_column("further")
    values: list[Callable[[Network], float | None]] = [
        lambda one: one.up_mbps,
        lambda one: one.down_mbps,
        lambda one: one.min_rtt_ms,
        lambda one: 100 * one.loss,
        lambda one: _wait_ms(one, UP),
        lambda one: _wait_ms(one, DOWN),
    ]
    for name, networks in groups.items():
        words = [f"{len(networks)} networks"] if len(networks) > 1 else further(unstructured(networks[0]))
        # One line for each network, however narrow the terminal is.
        more = Text("; ".join(words), no_wrap=True, overflow="ellipsis")
        rows.add_row(name, *(_range([value(one) for one in networks]) for value in values), more)
    return rows


def _range(values: Sequence[float | None]) -> str:
    """The only value, or the least and the greatest."""
    from analysis.text import NOTHING

    known = sorted({value for value in values if value is not None})
    return "-".join(f"{value:.4g}" for value in dict.fromkeys([known[0], known[-1]])) if known else NOTHING


def _wait_ms(network: Network, direction: str) -> float | None:
    """The longest time that a packet may wait in the link's queue of a direction."""
    queue, mbps = network.queue_of(direction), network.rate_of(direction)
    return (queue and mbps and queue.longest_wait_ms(mbps, network.min_rtt_ms)) or None


def details(networks: Sequence[Network], known: Catalogue[Network]) -> list[str]:
    """Lines on the settings of networks that the table has no columns for, and on where their numbers come from."""
    from analysis.networks import further
    from base.structure import unstructured

    lines = []
    for network in networks:
        words = "; ".join(further(unstructured(network)))
        lines += [f"{network.name}: {text}" for text in (words, known.sources.get(network.name)) if text]
    return lines


def document(networks: Sequence[Network], known: Catalogue[Network]) -> list[dict[str, Any]]:
    """The networks for other programs: all settings, and their sources."""
    from base.structure import unstructured

    return [{**unstructured(one), "source": known.sources.get(one.name)} for one in networks]


@click.command(params=parameters_of("networks"))
def main(net: str | None, seconds: float, into: Path, as_json: bool) -> None:
    """List the networks, and draw their rates and round-trip times over time. Networks that are named are listed with
    all settings and the sources of their numbers.

    Example: eyelevel networks --net lte,starlink
    """
    require_known_networks(net)

    from tuning import networks
    from tuning.settings import choose

    known = networks.load()
    chosen = choose("network", net, known) if net else list(known.values())
    if as_json:
        print_json(document(chosen, known))
        return
    begin("reading networks")

    from analysis.figures import networks as figure
    from analysis.figures.style import save

    groups = {one.name: [one] for one in chosen} if net else listed(known)
    console = terminal()
    console.print(table(groups))
    for line in details(chosen, known) if net else ():
        print_line(console, line)
    into.mkdir(parents=True, exist_ok=True)
    save(figure.draw([of_group[0] for of_group in groups.values()], seconds), into, DRAWING)
    give_to_caller(into, RESULTS)
    print_line(console, f"rates and round-trip times over time: {into / DRAWING}.png")
    if not net:
        suggest("make networks NET=NAME")
