"""`eyelevel devices`: what the devices are, and whether this machine can keep their paces."""

from statistics import median

import click
from rich import box
from rich.console import Console
from rich.table import Table

from base.errors import EyelevelError
from measure.host.exclusive import measuring_alone
from measure.host.pace import REPETITIONS, TOLERANCE, benchmark, found_pace, limits
from tuning import devices
from tuning.devices import Device
from tuning.settings import Catalogue


@click.command()
@click.option("--sittings", type=click.IntRange(min=1), help="Calibrate each device so often, and try its pace.")
def main(sittings: int | None) -> None:
    """Tell what the devices are (tuning/devices.toml, docs/devices.md).

    With --sittings each is calibrated as before a load, and five further trials are made at its pace; it fails
    when the median of these is not within 5 % of the device's index.

    Example: eyelevel devices --sittings 3
    """
    known, console = devices.load(), Console(highlight=False)
    console.print(listing(known))
    if not sittings:
        return
    with measuring_alone("calibrating devices"), limits() as (place, top), benchmark(place, top, ()) as trial:
        console.print(f"this machine: index {trial(None):.0f}")
        missed = []
        for sitting in range(1, sittings + 1):
            for device in known.values():
                pace = found_pace(device, trial)
                index = median(trial(pace.share) for _ in range(REPETITIONS))
                off = index / device.index - 1
                console.print(
                    f"sitting {sitting}: {device.name}: share {pace.share:.3f}, index {index:.0f} ({off:+.1%})"
                )
                missed += [device.name] if abs(off) > TOLERANCE else []
    if missed:
        raise EyelevelError(
            f"paces that were not kept within {TOLERANCE:.0%}: {', '.join(missed)}; is the machine idle?"
        )


def listing(known: Catalogue[Device]) -> Table:
    """The devices, a row each."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    table.add_column("device", no_wrap=True)
    for heading in ("window\npixels", "pixel\nratio", "index", "cores"):
        table.add_column(heading, justify="right")
    table.add_column("stands for")
    for name, device in known.items():
        window, cores = f"{device.width} x {device.height}", str(device.cores)
        table.add_row(name, window, f"{device.pixel_ratio:g}", f"{device.index:g}", cores, known.sources.get(name, ""))
    return table
