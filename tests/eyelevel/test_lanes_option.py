"""The meaning of --lanes for a new campaign and for a resumed one, here and on a cluster."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from factories import campaign_document
from support.lanes import NotedMethod

from base.errors import EyelevelError
from base.structure import unstructured
from dataset.table import write_document
from eyelevel.commands.lanes import main
from eyelevel.lanes import keep_calibration, lanes_of_campaign, requested_lanes
from eyelevel.measuring_options import MeasuringOptions
from measure.calibration.calibration import Calibration, calibrate
from measure.calibration.equivalence import CONDITIONS
from measure.campaign.campaign import Campaign
from measure.campaign.method import PAGES, Method
from measure.campaign.slot import machine_name
from measure.host.lanes import ONE_LANE, Lanes, lanes_of
from measure.run.setting import Loading
from record.site import Site
from tuning import networks
from tuning.defaults import DEFAULT_BROWSER
from tuning.networks import Network

TWO = lanes_of(2, [(0,), (1,)])
CORES = [[0], [1]]
MEASURED, ONE = Lanes(2, TWO, {"cores": CORES}), Lanes(calibration={"cores": CORES})


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache, without any calibration of lanes."""
    monkeypatch.setenv("EYELEVEL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def chosen(
    folder: Path,
    wanted: str | None = None,
    dask: str | None = None,
    cores: int = 2,
    method: Method = PAGES,
    **loading: Any,
) -> Lanes:
    """The lanes chosen on a machine with this many `cores`."""
    known = networks.load()
    campaign = Campaign(folder, {}, known, {}, runs=1, seed=1, loading=Loading(**loading), method=method)
    options = MeasuringOptions("again", lanes=wanted, dask=dask)
    return lanes_of_campaign(campaign, options, [(core,) for core in range(cores)])


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


def test_a_campaign_takes_as_many_lanes_as_were_measured_last(tmp_path: Path) -> None:
    keep_calibration(ONE, DEFAULT_BROWSER)
    assert chosen(tmp_path / "new", "auto") == ONE
    keep_calibration(MEASURED, DEFAULT_BROWSER)
    assert chosen(tmp_path / "new", "auto") == MEASURED


def test_a_calibration_is_taken_as_it_was_made(tmp_path: Path) -> None:
    same = {condition: {"PLT": 900.0} for condition in CONDITIONS}
    lanes = calibrate([(0,), (1,)], lambda *_: same, lambda _: None, {})
    keep_calibration(lanes, DEFAULT_BROWSER)
    lanes_of_new = chosen(tmp_path / "new", "auto")
    assert lanes_of_new.lanes == lanes.lanes == TWO
    assert lanes_of_new.calibration and lanes.calibration
    assert lanes_of_new.calibration["reason"] == lanes.calibration["reason"]


def test_without_a_calibration_the_command_that_makes_one_is_said(tmp_path: Path, cache: Path) -> None:
    for browser, line in ((DEFAULT_BROWSER, "make lanes"), ("firefox", "make lanes BROWSER=firefox")):
        with pytest.raises(EyelevelError, match=f"with {browser} has not been measured; .* idle machine: {line}$"):
            chosen(tmp_path / "new", "auto", browser=browser)
    assert not (tmp_path / "new").exists() and not cache.exists()


def test_a_calibration_is_of_its_processors_and_its_browser(tmp_path: Path) -> None:
    keep_calibration(MEASURED, "firefox")
    assert chosen(tmp_path / "new", "auto", browser="firefox-on-phone-mid") == MEASURED
    for other in ({"browser": "firefox", "cores": 3}, {"browser": DEFAULT_BROWSER}):
        with pytest.raises(EyelevelError, match="has not been measured"):
            chosen(tmp_path / "new", "auto", **other)


def test_a_calibration_that_is_broken_is_told_in_one_line(tmp_path: Path, cache: Path) -> None:
    keep_calibration(MEASURED, DEFAULT_BROWSER)
    [file] = (cache / "lanes").iterdir()
    file.write_text('{"count": "many"}')
    with pytest.raises(EyelevelError, match=f"^{file} is broken; measure again with 'make lanes': .*count"):
        chosen(tmp_path / "new", "auto")


@pytest.mark.needs_namespaces
def test_a_number_of_lanes_that_is_measured_is_printed_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def calibrated_lanes(browser: str, announce: Callable[[str], None]) -> Lanes:
        announce(f"with {browser}")
        return MEASURED

    # A real calibration would take minutes.
    monkeypatch.setattr("measure.calibration.trial.calibrated_lanes", calibrated_lanes)
    done = CliRunner().invoke(main, ["--browser", "firefox"])
    assert done.stdout.splitlines() == ["with firefox", "LANES=2"]
    assert chosen(tmp_path / "new", "auto", browser="firefox") == MEASURED


@pytest.mark.needs_namespaces
def test_how_many_loads_share_processors_is_measured_printed_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lanes_measured = []

    def calibrated_lanes(browser: str, announce: Callable[[str], None]) -> Lanes:
        lanes_measured.append(browser)
        return MEASURED

    def calibrated_sharing(network: Network, sites: Sequence[Site], *_: object) -> Calibration:
        count = {"mss": 6, "da2gc": 1}[network.name]
        assert [site.name for site in sites] == ["demo-news"]
        return Calibration("today", count, f"{count} do not disturb", 0.02, 0.05, (5, 10), ())

    # Real calibrations would take an hour.
    monkeypatch.setattr("measure.calibration.trial.calibrated_lanes", calibrated_lanes)
    monkeypatch.setattr("measure.calibration.sharing.calibrated_sharing", calibrated_sharing)
    monkeypatch.setattr("eyelevel.lanes.whole_cores", lambda: [(0,), (1,)])
    assert CliRunner().invoke(main, ["--net", "mss,da2gc"]).stdout == "LANES=2,mss:6\n"
    assert CliRunner().invoke(main, ["--net", "mss"]).stdout == "LANES=2,mss:6\n"
    # With --net, the kept number of lanes is used again; without --net, it is measured anew.
    assert lanes_measured == [DEFAULT_BROWSER]
    assert CliRunner().invoke(main, []).stdout == "LANES=2,mss:6\n"
    assert lanes_measured == [DEFAULT_BROWSER] * 2
    one = chosen(tmp_path / "new", "auto")
    assert one.value() == "2,mss:6"
    assert one.calibration and one.calibration["sharing"]["da2gc"]["reason"] == "1 do not disturb"
    refused = CliRunner().invoke(main, ["--net", "starlink"])
    assert str(refused.exception).startswith("starlink changes with time, so ")


@pytest.mark.parametrize("wanted", ["0", "-1", "many", "1.5", "\u0664\u06f2x"])
def test_what_is_no_number_is_refused(wanted: str) -> None:
    with pytest.raises(EyelevelError, match="the number of lanes must be 1 or more, or auto, not"):
        requested_lanes(wanted)


@pytest.mark.parametrize(
    ("wanted", "lanes", "value"),
    [
        ("mss:6", Lanes(at_once={"mss": 6}), "1,mss:6"),
        ("1,mss:6,da2gc:4", Lanes(at_once={"mss": 6, "da2gc": 4}), "1,da2gc:4,mss:6"),
        ("2,mss:3", Lanes(2, TWO, at_once={"mss": 3}), "2,mss:3"),
        ("mss:1", ONE_LANE, "1"),
    ],
)
def test_loads_on_networks_share_a_lane(tmp_path: Path, wanted: str, lanes: Lanes, value: str) -> None:
    one = chosen(tmp_path / "new", wanted)
    assert one == lanes
    assert one.value() == value
    assert chosen(begun(tmp_path / "c", one.record(), lanes=one.count, at_once=dict(one.at_once))) == lanes


def test_lanes_that_share_cores_follow_each_other() -> None:
    places = Lanes(2, TWO, at_once={"mss": 3, "da2gc": 2}).places()
    assert [lane.number for lane in places] == [1, 2, 3, 4, 5, 6]
    assert [lane.cores for lane in places] == [(0,)] * 3 + [(1,)] * 3


@pytest.mark.parametrize(
    ("wanted", "fault"),
    [
        ("mss:0", "'mss:0' in LANES is not a network with a number of loads at once, such as mss:6"),
        ("2,mss", "'mss' in LANES is not a network"),
        ("moon:2", "LANES=1,moon:2: moon is not a network of the campaign"),
        (
            "starlink:2",
            "LANES=1,starlink:2: starlink changes with time, so loads cannot share processors .*; omit it$",
        ),
        (
            "mss:9999",
            r"LANES=1,mss:9999: 9999 loads need 4999.5 GB of memory, and .* are free; make fewer loads at once",
        ),
    ],
)
def test_loads_that_cannot_share_a_lane_are_refused(tmp_path: Path, wanted: str, fault: str) -> None:
    with pytest.raises(EyelevelError, match=f"^{fault}"):
        chosen(tmp_path / "new", wanted)


def test_loads_of_a_study_and_unfilmed_ones_do_not_share(tmp_path: Path) -> None:
    with pytest.raises(EyelevelError, match="without a film, the end of a load's busy start is unknown"):
        chosen(tmp_path / "new", "mss:2", filmed=False)
    with pytest.raises(EyelevelError, match="a device needs its processors alone"):
        chosen(tmp_path / "new", "mss:2", browser="chromium-on-phone-mid")
    with pytest.raises(EyelevelError, match="only loads of pages can share processors"):
        chosen(tmp_path / "new", "mss:2", method=NotedMethod())


def test_on_a_network_that_has_changed_since_nothing_is_shared(tmp_path: Path) -> None:
    mss = networks.load()["mss"]
    for network, number in ((mss, 6), (replace(mss, min_rtt_ms=1.0), 1)):
        record = {"cores": CORES, "sharing": {"mss": {"network": unstructured(network)}}}
        keep_calibration(Lanes(calibration=record, at_once={"mss": 6}), DEFAULT_BROWSER)
        assert chosen(tmp_path / "new", "auto").runs_at_once("mss") == number


def test_more_lanes_than_cores_are_refused(tmp_path: Path) -> None:
    with pytest.raises(EyelevelError, match="3 lanes need 3 processor cores"):
        chosen(tmp_path / "new", "3")


def test_a_campaign_goes_on_in_the_lanes_that_it_was_begun_with(tmp_path: Path) -> None:
    folder = begun(tmp_path / "c", MEASURED.record(), lanes=2)
    assert chosen(folder) == chosen(folder, "auto") == Lanes(2, TWO)
    assert chosen(begun(tmp_path / "one")) == ONE_LANE


@pytest.mark.parametrize("lanes", [ONE, MEASURED])
def test_a_campaign_goes_on_whatever_was_measured_since_it_was_begun(tmp_path: Path, lanes: Lanes) -> None:
    folder = begun(tmp_path / "c", lanes.record(), lanes=lanes.count)
    keep_calibration(MEASURED if lanes == ONE else ONE, DEFAULT_BROWSER)
    assert chosen(folder, "auto").lanes == lanes.lanes


def test_a_campaign_does_not_go_on_in_another_number_of_lanes(tmp_path: Path) -> None:
    keep_calibration(MEASURED, DEFAULT_BROWSER)
    folder = begun(tmp_path / "c")
    for wanted in ("2", "auto"):
        with pytest.raises(EyelevelError, match="c was begun with LANES=1, not 2; resume it without LANES"):
            chosen(folder, wanted)


@pytest.mark.parametrize("arguments", [{"wanted": "2"}, {"wanted": "auto"}, {"dask": "tcp://head:1"}])
def test_shells_that_measure_one_run_at_a_time_are_refused_lanes_and_clusters(
    tmp_path: Path, arguments: dict[str, Any]
) -> None:
    option = "--dask" if "dask" in arguments else "--lanes"
    with pytest.raises(EyelevelError, match=f"SHELLS=mahimahi makes one run at a time .*; omit {option}$"):
        chosen(tmp_path / "new", **arguments, shells="mahimahi")


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
