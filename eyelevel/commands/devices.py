"""`eyelevel devices`: list the devices, and check whether this machine can keep their paces."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

import click

from base.errors import EyelevelError
from eyelevel.options import parameters_of
from tuning.devices import Device

if TYPE_CHECKING:
    from rich.table import Table

    from tuning.settings import Catalogue


@click.command(params=parameters_of("devices"))
def main(sittings: int | None) -> None:
    """List the devices (tuning/devices.toml, docs/programs.md).

    With --sittings, each device is calibrated as in a new campaign, which finds the share of a processor that it needs.
    Nine more trials use this share. The command fails if their median is not within 5 % of the device's index.

    Example: eyelevel devices --sittings 3
    """
    from rich.console import Console

    from measure.host.device_index import MANY, TOLERANCE, Paces, is_near, trials
    from measure.host.exclusive import measuring_alone
    from tuning import devices

    known, console = devices.load(), Console(highlight=False)
    console.print(listing(known))
    if not sittings:
        return
    missed = []
    with measuring_alone("calibrating devices"):
        for sitting in range(1, sittings + 1):
            for device in known.values():
                share = Paces().pace_of(device, warn=console.print).share
                with trials() as trial:
                    index = median(trial(share) for _ in range(MANY))
                off = index / device.index - 1
                console.print(f"sitting {sitting}: {device.name}: share {share:.3f}, index {index:.0f} ({off:+.1%})")
                missed += [] if is_near(device, index, TOLERANCE) else [device.name]
    if missed:
        raise EyelevelError(
            f"paces that were not kept within {TOLERANCE:.0%}: {', '.join(missed)}; is the machine idle?"
        )


def listing(known: Catalogue[Device]) -> Table:
    """A table of the devices, one row each."""
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("device", no_wrap=True)
    for heading in ("window\npixels", "pixel\nratio", "index", "cores"):
        table.add_column(heading, justify="right")
    table.add_column("stands for")
    for name, device in known.items():
        window, cores = f"{device.width} x {device.height}", str(device.cores)
        table.add_row(name, window, f"{device.pixel_ratio:g}", f"{device.index:g}", cores, known.sources.get(name, ""))
    return table
