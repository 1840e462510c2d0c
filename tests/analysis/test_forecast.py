"""The savings of RUNS=auto: those expected before a campaign, and those achieved after it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from analysis import forecast, hypotheses
from analysis.earlier import LOSSY_SCATTER, SCATTER, Expected, expected_on
from analysis.forecast import Plan, simulated_stops, simulated_values
from analysis.statistics.confirmatory import confirmatory
from analysis.statistics.hypotheses import Hypotheses, Pair
from analysis.statistics.outcomes import NOT_DECIDED
from analysis.statistics.samples import Samples
from analysis.statistics.spending import looks_of_plan
from dataset.table import read_document, write_document
from eyelevel.announcement import length_lines
from eyelevel.simulate import Truth, write
from tuning import networks

PAIR = Pair("tcp", "quic")
HOST = "here"
DECIDED_AT_ONCE = Expected(0.02, 0.0, {(PAIR, metric): (-0.3, 0.0) for metric in ("si", "plt")}, "large")
# No effect, but runs scatter too much to show that it is within the margin of half a round trip.
NEVER_DECIDED = Expected(0.5, 0.0, {(PAIR, metric): (0.0, 0.0) for metric in ("si", "plt")}, "large")


@pytest.fixture
def declared() -> Hypotheses:
    return hypotheses.load().restricted_to(("tcp", "quic"), ("si", "plt"))


def plan_of(runs: int = 31, sites: int = 3) -> Plan:
    names = tuple(f"s{number}" for number in range(sites))
    cells = [(site, network) for site in names for network in ("dsl", "lte")]
    run_s = {cell: 10.0 if cell[1] == "dsl" else 20.0 for cell in cells}
    return Plan(names, {"dsl": 24.0, "lte": 74.0}, ("tcp", "quic"), runs, dict.fromkeys(cells, 1.0), run_s)


def test_a_network_that_is_decided_at_once_ends_at_the_first_look_and_another_never(declared: Hypotheses) -> None:
    plan = plan_of()
    stops = simulated_stops(plan, declared, {"dsl": DECIDED_AT_ONCE, "lte": NEVER_DECIDED}, 200)
    # One campaign in a hundred decides by chance although there is no effect.
    assert (stops == [5, 31]).all(axis=1).mean() > 0.97
    runs, seconds = plan.length(np.array([[5, 31], [31, 31]]))
    assert runs.tolist() == [3 * 2 * (5 + 31), 3 * 2 * 2 * 31]
    assert seconds.tolist() == [3 * 2 * (5 * 10 + 31 * 20), 3 * 2 * 31 * (10 + 20)]


def test_without_a_look_before_its_end_a_campaign_is_expected_to_make_all_runs(declared: Hypotheses) -> None:
    assert (simulated_stops(plan_of(runs=4), declared, dict.fromkeys(("dsl", "lte"), DECIDED_AT_ONCE), 30) == 4).all()


@pytest.mark.slow
def test_simulated_campaigns_end_as_the_stopping_rule_has_it(declared: Hypotheses) -> None:
    """Each simulated campaign ends at the first look at which all contrasts of a network have a verdict by Student's
    t."""
    measured, known = plan_of(), Expected(0.1, 0.03)
    expected, looks = {"dsl": known, "lte": known}, replace(looks_of_plan([31], 3, may_end=True), exchanges=False)
    values = simulated_values(measured, declared, expected, 3, seed=3).reshape((3, 2, 3, 2, 2, 31))
    stops = simulated_stops(measured, declared, expected, 3, seed=3)
    assert len({int(stop) for stop in stops.ravel()}) > 1
    for campaign, ends in zip(values, stops, strict=True):
        enough = {"dsl": 31, "lte": 31}
        for blocks in reversed(looks.blocks):
            samples = Samples(campaign[..., :blocks], ("dsl", "lte"), tuple(measured.sites), PAIR, ("si", "plt"))
            table = confirmatory(samples, declared, measured.rtt_ms, looks)
            decided = table["verdict"].ne(NOT_DECIDED).groupby(table["network"]).all()
            enough |= {str(network): blocks for network in decided[decided].index}
        assert list(enough.values()) == list(ends)


def test_simulated_ratios_scatter_as_expected(declared: Hypotheses) -> None:
    known = Expected(0.1, 0.0, DECIDED_AT_ONCE.gains)
    values = simulated_values(plan_of(), declared, {"dsl": known, "lte": known}, 50, seed=1)
    ratios = np.log(values[:, :, 1] / values[:, :, 0])
    assert ratios.mean() == pytest.approx(-0.3, abs=0.005)
    assert ratios.std() == pytest.approx(0.1, rel=0.03)


def test_a_large_campaign_is_simulated_less_often(declared: Hypotheses) -> None:
    few, many = (forecast.number_of_campaigns(plan_of(sites=sites), declared) for sites in (3, 500))
    assert (few, many) == (forecast.MOST_CAMPAIGNS, forecast.LEAST_CAMPAIGNS)


def earlier_campaign(folder: Path, host: str) -> Path:
    """A campaign with known truth, as if measured on `host`."""
    truth = Truth(
        sites=12, networks=("dsl",), protocols=("tcp", "quic"), effects={"quic": -0.2}, effect_sd=0.1, noise_sd=0.06
    )
    document = read_document(write(folder, truth))
    assert document
    write_document(folder, replace(document, machine={"host": host}))
    return folder


def test_scatter_and_gains_are_those_of_the_newest_campaign_of_this_machine(
    tmp_path: Path, declared: Hypotheses
) -> None:
    earlier_campaign(tmp_path / "earlier", HOST)
    known = {name: networks.load()[name] for name in ("dsl", "mss")}
    notes: list[str] = []
    expected = expected_on(known, declared, tmp_path, tmp_path / "new", HOST, notes.append)
    dsl = expected["dsl"]
    assert dsl.source == "earlier"
    assert not notes
    # Each run scatters by 6 %, and each of its metrics by a further third of that.
    assert dsl.scatter == pytest.approx(0.06 * (2 * (1 + 1 / 9)) ** 0.5, rel=0.1)
    assert dsl.site_sd == pytest.approx(0.1, rel=0.6)
    assert dsl.gains[PAIR, "si"][0] == pytest.approx(-0.22, abs=0.1)
    assert expected["mss"] == Expected(LOSSY_SCATTER)


def test_what_another_machine_or_network_showed_is_not_taken(tmp_path: Path, declared: Hypotheses) -> None:
    earlier_campaign(tmp_path / "elsewhere", "another")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "runs.csv").write_text("no table")
    earlier_campaign(tmp_path / "here", HOST)
    dsl = networks.load()["dsl"]
    slower = {"dsl": replace(dsl, down_mbps=1.0)}
    notes: list[str] = []
    assert expected_on(slower, declared, tmp_path, tmp_path / "new", HOST, notes.append)["dsl"] == Expected(SCATTER)
    assert notes == [
        f"the earlier campaign broken is left aside: {tmp_path / 'broken'} is not a campaign: campaign.json is missing"
    ]
    itself = tmp_path / "here"
    assert expected_on({"dsl": dsl}, declared, tmp_path, itself, HOST, notes.append)["dsl"] == Expected(SCATTER)


@pytest.mark.parametrize(
    "change",
    [
        {"machine": None},
        {"machine": "a text"},
        {"settings": {"networks": ["dsl"]}},
        {"settings": {"networks": {"dsl": None}, "protocols": 3}},
        {"hypotheses": {"text": 3}},
    ],
    ids=str,
)
def test_a_campaign_that_is_damaged_is_left_aside_in_one_line(
    tmp_path: Path, declared: Hypotheses, change: dict[str, Any]
) -> None:
    """Whatever its damage, a folder next to a new campaign must not prevent the measurement of the new one."""
    earlier_campaign(tmp_path / "earlier", HOST)
    odd = earlier_campaign(tmp_path / "odd", HOST)
    file = odd / "campaign.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | change))
    known, notes = {"dsl": networks.load()["dsl"]}, list[str]()
    assert expected_on(known, declared, tmp_path, tmp_path / "new", HOST, notes.append)["dsl"].source in (
        "earlier",
        "odd",
    )
    assert len(notes) <= 1 and not any("\n" in note for note in notes)


def test_a_table_that_cannot_be_read_is_left_aside_in_one_line(tmp_path: Path, declared: Hypotheses) -> None:
    earlier_campaign(tmp_path / "earlier", HOST)
    odd = earlier_campaign(tmp_path / "odd", HOST)
    (odd / "runs.csv").write_bytes(b"\xff\xfe" + (odd / "runs.csv").read_bytes())
    known, notes = {"dsl": networks.load()["dsl"]}, list[str]()
    assert expected_on(known, declared, tmp_path, tmp_path / "new", HOST, notes.append)["dsl"].source == "earlier"
    (note,) = notes
    assert note.startswith("the earlier campaign odd is left aside: ")


def test_in_lanes_hours_are_fewer_and_runs_are_not() -> None:
    run_s, blocks = plan_of().run_s, np.array([[5, 31]])
    plans = (replace(plan_of(), run_s={cell: run_s[cell] / count for cell in run_s}) for count in (1, 4))
    (runs, seconds), (runs_of_four, seconds_of_four) = (plan.length(blocks) for plan in plans)
    assert (runs_of_four, seconds_of_four) == (runs, seconds / 4)


def test_what_is_assumed_is_said(declared: Hypotheses) -> None:
    expected = {"dsl": DECIDED_AT_ONCE, "lte": Expected(SCATTER)}
    first, measured, assumed = length_lines(plan_of(), declared, expected)
    assert " of 372 runs (" in first
    assert first.endswith("of 1 h 33 min")
    assert "from the campaign large on this machine" in measured
    assert "dsl 2.0 %" in measured
    assert "since no earlier campaign ran on this machine" in assumed
    assert "lte 7.1 %" in assumed
