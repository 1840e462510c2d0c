"""`eyelevel devices`: list the devices, and check whether this machine can keep their paces."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

import click

from base.errors import EyelevelError
from base.structure import unstructured
from base.terminal import plain_table, print_json, terminal
from eyelevel.next_step import suggest
from eyelevel.options import parameters_of
from tuning.devices import Device

if TYPE_CHECKING:
    from rich.table import Table

    from tuning.settings import Catalogue


@click.command(params=parameters_of("devices"))
def main(sittings: int | None, as_json: bool) -> None:
    """List the devices (tuning/devices.toml, docs/programs.md).

    With --sittings, each device is calibrated as in a new campaign, which finds the share of a processor that it needs.
    Nine more trials use this share. The command fails if their median is not within 5 % of the device's index.

    Example: eyelevel devices --sittings 3
    """
    from tuning import devices

    known = devices.load()
    if as_json:
        print_json([{**unstructured(one), "source": known.sources.get(name)} for name, one in known.items()])
    else:
        terminal().print(listing(known))
    if not sittings:
        suggest("make campaign DEVICE=NAME NET=lte PROTO=tcp,quic")
        return

    from measure.host.device_index import MANY, TOLERANCE, Paces, is_near, trials
    from measure.host.exclusive import measuring_alone

    def say(line: str) -> None:
        click.echo(line, err=as_json)

    missed = []
    with measuring_alone():
        for sitting in range(1, sittings + 1):
            for device in known.values():
                share = Paces().pace_of(device, warn=say).share
                with trials() as trial:
                    index = median(trial(share) for _ in range(MANY))
                off = index / device.index - 1
                say(f"sitting {sitting}: {device.name}: share {share:.3f}, index {index:.0f} ({off:+.1%})")
                missed += [] if is_near(device, index, TOLERANCE) else [device.name]
    if missed:
        raise EyelevelError(
            f"paces that were not kept within {TOLERANCE:.0%}: {', '.join(missed)}; is the machine idle?"
        )


def listing(known: Catalogue[Device]) -> Table:
    """A table of the devices, one row each."""
    table = plain_table()
    table.add_column("device", no_wrap=True)
    for heading in ("window\npixels", "pixel\nratio", "index", "cores"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("stands for")
    for name, device in known.items():
        window, cores = f"{device.width} x {device.height}", str(device.cores)
        table.add_row(name, window, f"{device.pixel_ratio:g}", f"{device.index:g}", cores, known.sources.get(name, ""))
    return table
