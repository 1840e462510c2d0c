"""The option --lanes: how many runs a machine measures at once.

Its value is `auto`, or the number of lanes. For some networks, the number of loads on them that share each lane's
processors can follow: `2,mss:6,da2gc:6`, or `mss:6` for one lane.

`eyelevel lanes` measures how many lanes a machine takes, and keeps the number in the cache, for each machine and
browser. `--lanes auto` reads it.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import psutil

from base.errors import EyelevelError, Misuse
from base.files import write_atomically
from base.ownership import give_to_caller
from base.places import cache_dir
from base.structure import from_json, to_json, unstructured
from base.words import in_bytes
from browsers.registry import browser_named
from dataset.table import CampaignDocument, read_document
from eyelevel.defaults import AUTO
from eyelevel.measuring_options import MeasuringOptions
from eyelevel.next_step import make_line
from measure.campaign.campaign import Campaign
from measure.campaign.method import Method
from measure.campaign.results import lanes_fault
from measure.campaign.slot import machine_name
from measure.host.lanes import MEMORY_OF_LOAD_BYTES, Lanes, lanes_of
from measure.host.topology import whole_cores
from record.site import Site
from tuning.defaults import DEFAULT_BROWSER, DEFAULT_SHELLS
from tuning.devices import device_of
from tuning.networks import Network

# The key of the calibration that has, for each network, the measurement of how many loads share processors.
SHARING = "sharing"

NUMBER = re.compile("[1-9][0-9]{0,3}")

# The processors of each core, as `measure.host.topology` finds them.
Cores = list[tuple[int, ...]]


def lanes_by_number(wanted: str, cores: Cores | None = None) -> Lanes:
    """The lanes of the option's value `wanted`, which is not AUTO, consisting of the `cores` (by default this
    machine's). Raises EyelevelError, also when there are too few cores."""
    lanes = requested_lanes(wanted)
    return replace(lanes, lanes=lanes_of(lanes.count, cores)) if lanes.count > 1 else lanes


def requested_lanes(wanted: str) -> Lanes:
    """The option's value `wanted`, which is not AUTO, without the lanes' cores. Raises EyelevelError."""
    first, *others = wanted.split(",")
    if ":" in first:
        first, others = "1", [first, *others]
    if not NUMBER.fullmatch(first):
        raise Misuse(f"the number of lanes must be 1 or more, or {AUTO}, not {first!r}")
    at_once = {}
    for part in others:
        network, _, number = part.rpartition(":")
        if not network or not NUMBER.fullmatch(number):
            raise Misuse(f"{part!r} in LANES is not a network with a number of loads at once, such as mss:6")
        at_once[network] = int(number)
    return Lanes(int(first), at_once={network: number for network, number in at_once.items() if number > 1})


def measured_lanes(browser: str, announce: Callable[[str], None], *, anew: bool) -> Lanes:
    """The lanes of this machine with `browser`: the kept ones, if there are any and they are not to be measured `anew`.
    Otherwise they are measured, and kept. Raises EyelevelError."""
    from measure.calibration.trial import calibrated_lanes

    kept = kept_lanes(browser)
    if kept and not anew:
        return kept
    lanes = calibrated_lanes(browser, announce)
    # The kept numbers of loads that share processors were measured on the kept lanes; they hold only for equal ones.
    if kept and kept.lanes == lanes.lanes and kept.calibration:
        shared = {SHARING: kept.calibration.get(SHARING, {})}
        lanes = replace(lanes, at_once=kept.at_once, calibration={**(lanes.calibration or {}), **shared})
    keep_calibration(lanes, browser)
    return lanes


def with_sharing(
    lanes: Lanes, network: Network, sites: Sequence[Site], browser: str, announce: Callable[[str], None]
) -> Lanes:
    """`lanes` with the measured number of loads on `network` that can share their processors. Raises EyelevelError."""
    from measure.calibration.sharing import calibrated_sharing, record_of

    if fault := sharing_fault(network):
        raise EyelevelError(fault)
    result = calibrated_sharing(network, sites, browser, lanes, announce)
    calibration = dict(lanes.calibration or {})
    calibration[SHARING] = {
        **calibration.get(SHARING, {}),
        network.name: record_of(result, network, sites, browser),
    }
    at_once = {name: number for name, number in lanes.at_once.items() if name != network.name}
    return replace(
        lanes, calibration=calibration, at_once=at_once | ({network.name: result.count} if result.count > 1 else {})
    )


def keep_calibration(lanes: Lanes, browser: str) -> None:
    """Keep `lanes` as those of this machine with `browser`, in place of earlier ones."""
    file = _file(browser)
    file.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(file, to_json(lanes))
    give_to_caller(file, cache_dir())


def kept_lanes(browser: str, cores: Cores | None = None) -> Lanes | None:
    """The lanes of the `cores` (by default this machine's) that were measured with `browser`; None if none were.
    Raises EyelevelError when the file is broken."""
    cores = whole_cores() if cores is None else cores
    if not (file := _file(browser)).exists():
        return None
    lanes = from_json(file.read_text(), Lanes, f"{file} is broken; measure again with 'make lanes': ")
    is_of_cores = lanes.calibration and lanes.calibration.get("cores") == [list(core) for core in cores]
    return lanes if is_of_cores else None


def lanes_by_calibration(
    browser: str = DEFAULT_BROWSER, cores: Cores | None = None, networks: Mapping[str, Network] | None = None
) -> Lanes:
    """The lanes of the `cores` (by default this machine's) that the last calibration found for `browser` on any device;
    for a build, for the installed browser of its kind.

    Loads share processors on those of `networks` that have not changed since the calibration; by default, on all that
    it measured. Raises EyelevelError when there was no calibration.
    """
    program = browser_named(browser).kind
    if lanes := kept_lanes(program, cores):
        if networks is None:
            return lanes
        measured = (lanes.calibration or {}).get(SHARING, {})
        at_once = {
            name: number
            for name, number in lanes.at_once.items()
            if name in networks and measured.get(name, {}).get("network") == unstructured(networks[name])
        }
        return replace(lanes, at_once=at_once)
    line = make_line("lanes", {} if program == DEFAULT_BROWSER else {"BROWSER": program})
    raise EyelevelError(
        f"how many lanes these processors take with {program} has not been measured; measure it on an idle machine: "
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
        raise Misuse(f"SHELLS={shells} makes one run at a time on this machine; omit {option}")
    if options.dask and wanted == AUTO:
        raise Misuse(
            "LANES=auto is for one machine; on a cluster, run 'eyelevel lanes' on each worker, and give the campaign "
            "that number"
        )
    begun = read_document(folder)
    document = begun or CampaignDocument()
    before = Lanes(document.settings.lanes, at_once=document.settings.at_once)
    # A calibration made after the campaign began may have another result.
    if wanted == AUTO and not document.lanes.get(machine_name(), {}).get("calibration"):
        lanes = lanes_by_calibration(campaign.loading.browser, cores, campaign.networks)
    else:
        value = before.value() if wanted in (None, AUTO) else wanted
        lanes = requested_lanes(value) if options.dask else lanes_by_number(value, cores)
    if begun and lanes.value() != before.value():
        raise EyelevelError(
            f"{folder.name} was begun with LANES={before.value()}, not {lanes.value()}; resume it without LANES, or "
            "use another campaign name"
        )
    require_sharing(campaign, lanes)
    if not options.dask and (fault := memory_fault(lanes)):
        raise EyelevelError(f"LANES={lanes.value()}: {fault}")
    if lanes.lanes and (fault := lanes_fault(document, machine_name(), lanes.record())):
        raise EyelevelError(f"{folder.name}: {fault}; use the same processors, or another campaign name")
    return lanes


def require_sharing(campaign: Campaign, lanes: Lanes) -> None:
    """Raises EyelevelError unless loads of `campaign` may share processors as `lanes` has it."""
    fault = None
    for name in lanes.at_once:
        if not (network := campaign.networks.get(name)):
            fault = f"{name} is not a network of the campaign; omit it, or add it to NET"
        elif type(campaign.method) is not Method:
            fault = "only loads of pages can share processors, not those of a study; use LANES=1"
        elif any(device_of(browser) for browser in campaign.browsers):
            fault = "a device needs its processors alone; use LANES=1, or no DEVICE"
        elif not campaign.loading.filmed:
            fault = "without a film, the end of a load's busy start is unknown; use LANES=1, or film the loads"
        else:
            fault = sharing_fault(network)
        if fault:
            raise EyelevelError(f"LANES={lanes.value()}: {fault}")


def memory_fault(lanes: Lanes) -> str | None:
    """Why this machine has too little memory for as many loads at once as `lanes` has; or None."""
    loads = lanes.count * lanes.loads_of_cores
    needed, free = loads * MEMORY_OF_LOAD_BYTES, psutil.virtual_memory().available
    if loads == 1 or needed <= free:
        return None
    return f"{loads} loads need {in_bytes(needed)} of memory, and {in_bytes(free)} are free; make fewer loads at once"


def sharing_fault(network: Network) -> str | None:
    """Why no loads on `network` can share processors; or None."""
    if not network.follows_clock:
        return None
    return f"{network.name} changes with time, so loads cannot share processors on it; omit it"
