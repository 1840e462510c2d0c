"""The pace of a device: the browser's processes are held at it while the page loads (`measure.host.pace`)."""

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
    """Holds a browser at the pace of its device, and leaves DEVICE_PACE. Does nothing if the browser runs at this
    machine's own pace."""

    name = "pace"
    columns = (
        Column(
            SHARE,
            "",
            "on a [device](programs.md#devices): the share of a processor that each process of the browser had",
            is_share=True,
        ),
        Column(INDEX, "", "the index that the benchmark reached with it before the run's block"),
        Column(INDEX_AFTER, "", "and after it; unless it is within 10 % of the device's, the run does not count"),
    )

    def around_load(self, load: ObservedLoad) -> AbstractContextManager[None]:
        """Hold the browser's processes at the device's pace; raises EyelevelError when the pace cannot be reached."""
        if not (device := device_of(load.browser)):
            return nullcontext()
        from measure.host.pace import paced

        load.await_ready()  # its processes start until then
        cores = load.layout.browser if load.layout else ()
        return paced(
            load.root, browser_named(load.browser), device, cores, partial(write_json, load.folder / DEVICE_PACE)
        )

    def read(self, run: FinishedRun) -> Readings:
        """The pace, and the index after the block if known (`at_their_paces`)."""
        if not (file := run.folder / DEVICE_PACE).exists():
            return {}
        pace = read_json(file)
        return {SHARE: pace.get("share"), INDEX: pace.get("index"), INDEX_AFTER: pace.get("index_after")}


INSTRUMENT = Pace()


@contextmanager
def at_their_paces(
    devices: Mapping[Path, Device], layout: Layout | None, warn: Callable[[str], object]
) -> Iterator[None]:
    """Wait until the paces of `devices` (folder of a load → its device) are reached, on the cores of `layout`. The
    caller makes the loads within the context. At its end, the index of each device is stored in the folders of those
    loads that ran at its pace.

    Calls `warn` while a pace is not reached. Raises EyelevelError, OSError.
    """
    from measure.host.device_index import HERE

    each, cores = set(devices.values()), layout.browser if layout else ()
    HERE.await_reached(each, cores, warn)
    yield
    paces = HERE.look_again(each, cores)
    for folder, device in devices.items():
        if (file := folder / DEVICE_PACE).exists():
            write_json(file, {**read_json(file), "index_after": paces[device.name].index})
