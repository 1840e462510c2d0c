"""The option --lanes: how many runs a machine measures at once.

`eyelevel lanes` measures how many lanes a machine takes, and keeps the number in the cache, for each machine and
browser. `--lanes auto` reads it.
"""

from pathlib import Path

from base.errors import EyelevelError
from base.files import write_atomically
from base.ownership import give_to_caller
from base.places import cache_dir
from base.structure import from_json, to_json
from dataset.table import CampaignDocument, read_document
from eyelevel.defaults import AUTO
from eyelevel.make import make_line
from eyelevel.measuring_options import MeasuringOptions
from measure.campaign.campaign import Campaign
from measure.campaign.results import lanes_fault
from measure.campaign.slot import machine_name
from measure.host.lanes import ONE_LANE, Lanes, lanes_of
from measure.host.topology import whole_cores
from tuning.defaults import DEFAULT_BROWSER, DEFAULT_SHELLS
from tuning.devices import browser_and_device

# The processors of each core, as `measure.host.topology` finds them.
Cores = list[tuple[int, ...]]


def lanes_by_number(count: int, cores: Cores | None = None) -> Lanes:
    """`count` lanes of the `cores` (by default this machine's), for a number that the user gave. Raises EyelevelError
    when there are too few cores."""
    return ONE_LANE if count == 1 else Lanes(count, lanes_of(count, cores))


def number_of_lanes(wanted: str) -> int:
    """`wanted` as a number. Raises EyelevelError."""
    if not wanted.isdecimal() or not int(wanted):
        raise EyelevelError(f"the number of lanes must be 1 or more, or {AUTO}, not {wanted!r}")
    return int(wanted)


def keep_calibration(lanes: Lanes, browser: str) -> None:
    """Keep `lanes` as the number that this machine takes with `browser`, in place of an earlier one."""
    file = _file(browser)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, to_json(lanes))
    give_to_caller(file, cache_dir())


def lanes_by_calibration(browser: str = DEFAULT_BROWSER, cores: Cores | None = None) -> Lanes:
    """As many lanes of the `cores` (by default this machine's) as the last calibration found for `browser` on any
    device.

    Raises EyelevelError when there was no calibration.
    """
    cores = whole_cores() if cores is None else cores
    program, _ = browser_and_device(browser)
    if (file := _file(program)).exists():
        lanes = from_json(file.read_text(), Lanes, f"{file} is broken; measure anew with 'make lanes': ")
        if lanes.calibration and lanes.calibration.get("cores") == [list(core) for core in cores]:
            return lanes
    line = make_line("lanes", {} if program == DEFAULT_BROWSER else {"BROWSER": program})
    raise EyelevelError(
        f"how many lanes these processors take with {program} is not measured yet; measure it while nothing else runs: "
        f"{line}"
    )


def _file(browser: str) -> Path:
    return cache_dir() / "lanes" / f"{machine_name()}-{browser}.json"


def lanes_of_campaign(campaign: Campaign, options: MeasuringOptions, cores: Cores | None = None) -> Lanes:
    """The lanes in which `campaign` is measured: those that `options` request, or those that it began with.

    They consist of the `cores` (by default this machine's). Raises EyelevelError when the campaign cannot use them.
    """
    folder, wanted = campaign.folder, options.lanes
    if (shells := campaign.loading.shells) != DEFAULT_SHELLS and (options.dask or wanted not in (None, "1")):
        option = "--dask" if options.dask else "--lanes"
        raise EyelevelError(f"SHELLS={shells} is for one run at a time on this machine; leave out {option}")
    if options.dask and wanted == AUTO:
        raise EyelevelError(
            "LANES=auto is for one machine; on a cluster, 'eyelevel lanes' says how many lanes each worker takes, and "
            "the campaign is given that number"
        )
    begun = read_document(folder)
    document = begun or CampaignDocument()
    # A calibration made after the campaign began may have another result.
    if wanted == AUTO and not document.lanes.get(machine_name(), {}).get("calibration"):
        lanes = lanes_by_calibration(campaign.loading.browser, cores)
    else:
        count = document.settings.lanes if wanted in (None, AUTO) else number_of_lanes(wanted)
        lanes = Lanes(count) if options.dask and count > 1 else lanes_by_number(count, cores)
    if begun and lanes.count != document.settings.lanes:
        raise EyelevelError(
            f"{folder.name} was begun with {document.settings.lanes} at once, not {lanes.count}; resume it without "
            "LANES, or use another campaign name"
        )
    if lanes.lanes and (fault := lanes_fault(document, machine_name(), lanes.record())):
        raise EyelevelError(f"{folder.name}: {fault}; give this process the same ones, or use another campaign name")
    return lanes
