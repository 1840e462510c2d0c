"""The option --lanes: how many runs a machine measures at once."""

from collections.abc import Callable
from pathlib import Path

from rich.console import Console

from base.errors import EyelevelError
from base.terminal import print_line
from dataset.table import CampaignDocument, read_document
from eyelevel.defaults import AUTO
from measure.campaign.results import lanes_fault
from measure.campaign.slot import machine_name
from measure.host.lanes import ONE_LANE, Lanes, lanes_of
from tuning.defaults import DEFAULT_BROWSER

# The processors of each core, as `measure.host.topology` finds them.
Cores = list[tuple[int, ...]]


def lanes_by_number(count: int, cores: Cores | None = None) -> Lanes:
    """`count` lanes of the `cores` (this machine's unless given), as a person wants them. Raises EyelevelError when
    there are too few."""
    return ONE_LANE if count == 1 else Lanes(count, lanes_of(count, cores))


def measured_lanes(console: Console, browser: str = DEFAULT_BROWSER) -> Lanes:
    """As many lanes as this machine takes, which is measured now. Raises EyelevelError."""
    from measure.calibration.trial import calibrated_lanes

    return calibrated_lanes(browser, lambda text: print_line(console, text))


def number_of_lanes(wanted: str) -> int:
    """The number that `wanted` is. Raises EyelevelError."""
    if not wanted.isdecimal() or not int(wanted):
        raise EyelevelError(f"the number of lanes must be 1 or more, or {AUTO}, not {wanted!r}")
    return int(wanted)


def lanes_of_campaign(
    folder: Path,
    wanted: str | None,
    dask: str | None,
    console: Console,
    calibrate: Callable[[], Lanes],
    cores: Cores | None = None,
) -> Lanes:
    """The lanes in which the campaign in `folder` is measured: those that are `wanted`, or those of its beginning.

    They are of the `cores` (this machine's unless given); `calibrate` measures how many these take. Raises
    EyelevelError.
    """
    document = read_document(folder)
    if dask and wanted == AUTO:
        raise EyelevelError(
            "a cluster's workers find out for themselves how many lanes they take ('eyelevel worker --lanes auto', or "
            "'eyelevel lanes'); give the campaign that number"
        )
    if wanted == AUTO:
        if document and (lanes := _calibrated_before(document, folder, cores)):
            return lanes
        text = "how many lanes this machine takes is measured; nothing else may run on it meanwhile"
        console.print(text, soft_wrap=True)
        return calibrate()
    count = number_of_lanes(wanted) if wanted else document.settings.lanes if document else 1
    return _continued(document, folder, Lanes(count) if dask and count > 1 else lanes_by_number(count, cores))


def _calibrated_before(document: CampaignDocument, folder: Path, cores: Cores | None) -> Lanes | None:
    """The lanes that were measured for the campaign in `folder` on this machine; None when they were on others. Raises
    EyelevelError when none were."""
    if not any(record.get("calibration") for record in document.lanes.values()):
        raise EyelevelError(
            f"the campaign {folder.name} was begun with {document.settings.lanes} at once, and nothing was measured of "
            "lanes; go on with it without LANES, or use another campaign name"
        )
    if machine_name() not in document.lanes:
        return None
    return _continued(document, folder, lanes_by_number(document.settings.lanes, cores))


def _continued(document: CampaignDocument | None, folder: Path, lanes: Lanes) -> Lanes:
    """`lanes`, with the calibration that is kept of them. Raises EyelevelError when they are on other cores than
    before."""
    if document is None or not lanes.lanes:
        return lanes
    if fault := lanes_fault(document, machine_name(), lanes.record()):
        raise EyelevelError(f"{folder.name}: {fault}; give this process the same ones, or use another campaign name")
    return lanes
