"""The pace of a device: the browser's processes run at it while the page loads (`measure.host.pace`)."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path

from base.files import read_json, write_json
from browsers.registry import browser_named
from dataset.columns import Column
from dataset.run_files import DEVICE_PACE
from measure.host.affinity import Layout
from measure.instruments.contract import FinishedRun, Instrument, ObservedLoad, Readings
from tuning.devices import Device, device_of

SHARE, INDEX, INDEX_AFTER = "device_share", "device_index", "device_index_after"


class Pace(Instrument):
    """Holds a browser at the pace of its device, and leaves DEVICE_PACE; does nothing where that is this machine."""

    name = "pace"
    columns = (
        Column(
            SHARE,
            "",
            "where the browser ran on a [device](devices.md): the share of a processor that each of its processes had",
            is_share=True,
        ),
        Column(INDEX, "", "the index that the benchmark reached with it before the run's block"),
        Column(INDEX_AFTER, "", "and after it; where it is not within 5 % of the device's, the run does not count"),
    )

    def around_load(self, load: ObservedLoad) -> AbstractContextManager[None]:
        """Paces the browser's processes while the block runs; raises EyelevelError when the pace cannot be had."""
        if not (device := device_of(load.browser)):
            return nullcontext()
        from measure.host.pace import paced

        load.await_ready()  # until then its processes start
        cores = load.layout.browser if load.layout else ()
        return paced(
            load.root, browser_named(load.browser), device, cores, partial(write_json, load.folder / DEVICE_PACE)
        )

    def read(self, run: FinishedRun) -> Readings:
        """The pace, with the index after the block once that is known (`at_their_paces`)."""
        if not (file := run.folder / DEVICE_PACE).exists():
            return {}
        pace = read_json(file)
        return {SHARE: pace.get("share"), INDEX: pace.get("index"), INDEX_AFTER: pace.get("index_after")}


INSTRUMENT = Pace()


@contextmanager
def at_their_paces(
    devices: Mapping[Path, Device], layout: Layout | None, warn: Callable[[str], object]
) -> Iterator[None]:
    """Wait until the paces of `devices` (folder of a load → its device) are reached, on the cores of `layout`, and have
    the loads made in the block; then store the index of its device in the folder of each that was at its pace.

    `warn` is called while a pace is not reached. Raises EyelevelError, OSError.
    """
    from measure.host.device_index import HERE

    each, cores = set(devices.values()), layout.browser if layout else ()
    HERE.await_reached(each, cores, warn)
    yield
    paces = HERE.look_again(each, cores)
    for folder, device in devices.items():
        if (file := folder / DEVICE_PACE).exists():
            write_json(file, {**read_json(file), "index_after": paces[device.name].index})
