"""The meaning of --lanes for a campaign: for one that begins, for one that goes on, here and on a cluster."""

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from factories import campaign_document
from rich.console import Console

from base.errors import EyelevelError
from dataset.table import write_document
from eyelevel.lanes import lanes_of_campaign, measured_lanes, number_of_lanes
from measure.campaign.slot import machine_name
from measure.host.lanes import ONE_LANE, Lanes, lanes_of

TWO = lanes_of(2, [(0,), (1,)])
MEASURED = Lanes(2, TWO, {"reason": "measured"})


def chosen(
    folder: Path,
    wanted: str | None = None,
    dask: str | None = None,
    calibrate: Callable[[], Lanes] = lambda: MEASURED,
    cores: int = 2,
) -> Lanes:
    """The lanes on a machine of so many `cores`."""
    console = Console(file=io.StringIO())
    return lanes_of_campaign(folder, wanted, dask, console, calibrate, [(core,) for core in range(cores)])


def begun(folder: Path, record: dict[str, Any] | None = None, **settings: Any) -> Path:
    """A campaign's folder, of this machine."""
    document = campaign_document(**settings)
    if record:
        document.lanes[machine_name()] = record
    folder.mkdir()
    write_document(folder, document)
    return folder


def test_a_campaign_has_one_lane_unless_somebody_says_otherwise(tmp_path: Path) -> None:
    assert chosen(tmp_path / "new") == ONE_LANE
    assert chosen(tmp_path / "new", "1") == ONE_LANE
    assert chosen(tmp_path / "new", "2") == Lanes(2, TWO)
    assert chosen(tmp_path / "new", "auto") == MEASURED


@pytest.mark.parametrize("wanted", ["0", "-1", "many", "1.5", "\u0664\u06f2x"])
def test_what_is_no_number_is_refused(wanted: str) -> None:
    with pytest.raises(EyelevelError, match="the number of lanes must be 1 or more, or auto, not"):
        number_of_lanes(wanted)


def test_more_lanes_than_cores_are_refused(tmp_path: Path) -> None:
    with pytest.raises(EyelevelError, match="3 lanes need 3 processor cores"):
        chosen(tmp_path / "new", "3")


def test_a_campaign_goes_on_in_the_lanes_that_it_was_begun_with(tmp_path: Path) -> None:
    folder = begun(tmp_path / "c", MEASURED.record(), lanes=2)
    assert chosen(folder) == chosen(folder, "auto") == Lanes(2, TWO)
    assert chosen(begun(tmp_path / "one")) == ONE_LANE


def test_a_calibration_that_took_one_lane_is_not_repeated(tmp_path: Path) -> None:
    folder = begun(tmp_path / "c", Lanes(calibration={"reason": "they disturb"}).record())
    assert chosen(folder, "auto", calibrate=lambda: pytest.fail("it is measured again")) == ONE_LANE


def test_lanes_are_measured_with_the_browser_and_what_is_measured_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    def calibrated_lanes(browser: str, announce: Callable[[str], None]) -> Lanes:
        announce(f"with {browser}")
        return MEASURED

    # It would take minutes.
    monkeypatch.setattr("measure.calibration.trial.calibrated_lanes", calibrated_lanes)
    printed = io.StringIO()
    assert measured_lanes(Console(file=printed), "firefox") == MEASURED
    assert printed.getvalue() == "with firefox\n"


def test_lanes_are_not_found_out_for_a_campaign_that_was_begun_without(tmp_path: Path) -> None:
    with pytest.raises(EyelevelError, match="c was begun with 1 at once, and nothing was measured of lanes"):
        chosen(begun(tmp_path / "c"), "auto")


def test_lanes_on_other_cores_are_refused(tmp_path: Path) -> None:
    folder = begun(tmp_path / "c", MEASURED.record(), lanes=2)
    with pytest.raises(
        EyelevelError, match=r"had the processors \[\[0\], \[1\]\] when it began .* now \[\[0, 1\], \[2, 3\]\]"
    ):
        chosen(folder, cores=4)


def test_on_a_cluster_the_lanes_are_the_workers(tmp_path: Path) -> None:
    lanes = chosen(tmp_path / "new", "5", dask="tcp://head:1")
    assert (lanes.count, lanes.lanes, lanes.is_here) == (5, (), False)
    assert chosen(tmp_path / "new", None, dask="tcp://head:1") == ONE_LANE
    with pytest.raises(EyelevelError, match="give the campaign that number"):
        chosen(tmp_path / "new", "auto", dask="tcp://head:1")
