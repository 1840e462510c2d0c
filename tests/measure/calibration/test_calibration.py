"""Lanes are used only after a measurement showed that they do not disturb each other; here, measurements are
simulated."""

import math
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import pytest
from factories import ROW, rejected
from support.lanes import NotedMethod
from support.scripted import lane_thread

from base.errors import EyelevelError
from dataset.table import Row
from measure.calibration import trial as trials
from measure.calibration.calibration import LoadsDoNotCount, Trial, attempt, calibrate, most_lanes
from measure.calibration.equivalence import (
    ALONE,
    BESIDE,
    BOUND,
    DISTURBED,
    EQUIVALENT,
    ERROR,
    LOOKS,
    OPEN,
    WHOLE,
    Round,
)
from measure.host.affinity import CORES_FOR_PLACES
from measure.host.lanes import Lane
from measure.run.setting import Circumstances, Setting
from record.demo import generate
from record.site import write_site
from tuning import networks, protocols

PATIENCE_S = 60

MeasureRound = Callable[[int, int], Round]


def machine(of_cores: Callable[[int], float], of_neighbours: Callable[[int], float], sd: float = 0.01) -> MeasureRound:
    """A machine on which a run in one of several lanes takes longer by two factors: one for fewer cores, and one for
    neighbours."""
    random = Random(1)

    def measure_round(lanes: int, _: int) -> Round:
        factors = {WHOLE: 1.0, ALONE: of_cores(lanes), BESIDE: of_cores(lanes) * of_neighbours(lanes)}
        return {
            condition: {
                name: usual * factor * math.exp(random.gauss(0, sd)) for name, usual in (("PLT", 900.0), ("SI", 700.0))
            }
            for condition, factor in factors.items()
        }

    return measure_round


def calibrated(cores: int, measure_round: MeasureRound) -> tuple[int, dict[int, str]]:
    """How many lanes a machine takes, and the verdict on each number that was tried."""
    lanes = calibrate([(core,) for core in range(cores)], measure_round, lambda _: None, {"site": "s"})
    assert lanes.calibration is not None
    assert len(lanes.lanes) == (lanes.count if lanes.count > 1 else 0)
    return lanes.count, {one["count"]: one["verdict"] for one in lanes.calibration["trials"]}


def test_a_machine_takes_all_lanes_that_nothing_disturbs() -> None:
    assert calibrated(24, machine(lambda _: 1.0, lambda _: 1.0)) == (4, {4: EQUIVALENT})


def test_two_cores_are_tried_and_found_too_few_by_measurement() -> None:
    messages: list[str] = []
    small = machine(lambda _: 1.5, lambda _: 1.1)
    lanes = calibrate([(0,), (1,)], small, messages.append, {})
    assert (lanes.count, lanes.lanes) == (1, ())
    assert lanes.calibration is not None
    (trial,) = lanes.calibration["trials"]
    assert (trial["count"], trial["verdict"], trial["rounds"]) == (2, DISTURBED, LOOKS[0])
    assert "2 lanes disturb by more than 2 %" in lanes.calibration["reason"]
    assert "1.10" in lanes.calibration["reason"] and lanes.calibration["reason"] in messages


def test_it_is_measured_not_counted() -> None:
    """Two cores are enough for two lanes if runs take no longer in a lane of one core: cores are not simply counted."""
    assert calibrated(2, machine(lambda _: 1.0, lambda _: 1.0)) == (2, {2: EQUIVALENT})


def test_the_largest_number_that_does_not_disturb_is_taken() -> None:
    cores = 8 * CORES_FOR_PLACES
    for most in range(1, 9):
        disturbing = machine(lambda _: 1.0, lambda lanes, most=most: 1.0 if lanes <= most else 1.1)  # type: ignore[misc]
        assert calibrated(cores, disturbing)[0] == most


def test_lanes_that_are_only_slower_alone_are_not_taken_either() -> None:
    """Times measured in such lanes would differ from those on the whole machine."""
    count, verdicts = calibrated(12, machine(lambda _: 1.1, lambda _: 1.0))
    assert (count, verdicts) == (1, {2: DISTURBED})


def test_what_cannot_be_decided_is_not_taken() -> None:
    trial = attempt(2, machine(lambda _: 1.0, lambda _: 1.0, sd=0.2), lambda _: None)
    assert (trial.verdict, trial.rounds) == (OPEN, LOOKS[-1])
    assert "may disturb" in trial.reason
    assert calibrated(12, machine(lambda _: 1.0, lambda _: 1.0, sd=0.2))[0] == 1


def test_faster_lanes_are_no_better() -> None:
    assert attempt(2, machine(lambda _: 0.9, lambda _: 1.0), lambda _: None).verdict == DISTURBED


def test_lanes_whose_loads_do_not_count_are_not_taken() -> None:
    def measure_round(lanes: int, number: int) -> Round:
        raise LoadsDoNotCount("a load in one does not count")

    trial = attempt(2, measure_round, lambda _: None)
    assert trial == Trial(2, DISTURBED, "2 lanes disturb: a load in one does not count", 0)


def test_one_core_needs_no_measurement() -> None:
    assert calibrated(1, machine(lambda _: 1.0, lambda _: 1.0)) == (1, {})


@pytest.mark.parametrize(("cores", "lanes"), [(1, 1), (2, 2), (8, 2), (12, 2), (18, 3), (64, 10)])
def test_as_many_lanes_are_tried_as_have_room_but_two_at_least(cores: int, lanes: int) -> None:
    assert most_lanes(cores) == lanes


@pytest.mark.slow
def test_lanes_that_disturb_by_the_bound_are_seldom_taken() -> None:
    tries = 150
    random = Random(7)

    def measure_round(_: int, __: int) -> Round:
        noise = [math.exp(random.gauss(0, 0.005)) for _ in range(3)]
        return {WHOLE: {"PLT": noise[0]}, ALONE: {"PLT": noise[1]}, BESIDE: {"PLT": (1 + BOUND) * noise[2]}}

    taken = sum(attempt(2, measure_round, lambda _: None).verdict == EQUIVALENT for _ in range(tries))
    # At most a share of ERROR may be wrong, which is 7.5 of these tries on average. More than 15 occur by chance once
    # in 300 times.
    assert taken <= 2 * ERROR * tries


def test_each_lane_is_the_one_that_is_timed_and_has_all_others_beside_it() -> None:
    turns: list[tuple[Lane, tuple[Lane, ...]]] = []

    def turn(one: Lane, others: Sequence[Lane]) -> dict[str, Row]:
        turns.append((one, tuple(others)))
        return {"tcp": ROW}

    lanes = [Lane(number, (number - 1,)) for number in (1, 2, 3)]
    for number in (1, 2, 3):
        times = trials.one_round(lanes, [(0,), (1,), (2,)], number, turn)
        assert set(times) == {WHOLE, ALONE, BESIDE}
        assert times[WHOLE] == {"PLT over tcp": 1234.5, "SI over tcp": 650.5, trials.CANARY: 50.0}
    beside = [(one.number, [lane.number for lane in others]) for one, others in turns if others]
    assert sorted(beside) == [(1, [2, 3]), (2, [1, 3]), (3, [1, 2])]
    assert sum(one.cores == (0, 1, 2) for one, _ in turns) == 3
    assert sum(not others and len(one.cores) == 1 for one, others in turns) == 3


def test_a_lane_is_timed_while_each_other_lane_is_at_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lanes are threads here, and runs are simulated. A run of the timed lane ends only when each neighbour has begun
    its second block."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    site = write_site(generate("demo-light"), tmp_path / "site")
    known = protocols.load()
    settings = {name: Setting(site, networks.load()["dsl"], known[name]) for name in ("tcp", "quic")}
    one, *others = (Lane(number, (0,)) for number in (1, 2, 3))
    rows = trials.one_turn(one, others, settings, Watched(), lane_thread)
    assert {name: row.lane for name, row in rows.items()} == {"tcp": 1, "quic": 1}
    assert {(1, 1), (2, 2), (3, 2)} <= set(Watched.attempts)
    assert list((tmp_path / "temporary").iterdir()) == []


class Watched(NotedMethod):
    """Runs that are recorded, by lane and block, as they begin."""

    attempts: list[tuple[int, int]] = []  # noqa: RUF012 (of one test)
    second_blocks = {2: threading.Event(), 3: threading.Event()}  # noqa: RUF012

    def make(self, setting: Setting, circumstances: Circumstances, folder: Path, attempt: int = 1, **_: object) -> None:
        lane = circumstances.lane or 0
        self.attempts.append((lane, circumstances.block))
        if lane == 1:
            assert all(event.wait(PATIENCE_S) for event in self.second_blocks.values())
        elif circumstances.block == 2:
            self.second_blocks[lane].set()
        super().make(setting, circumstances, folder, attempt)


def test_a_load_that_does_not_count_says_under_which_condition() -> None:
    lanes = [Lane(1, (0,)), Lane(2, (1,))]
    broken = rejected("machine_busy: it is")

    def beside(_: Lane, others: Sequence[Lane]) -> dict[str, Row]:
        return {"tcp": broken if others else ROW}

    def whole(one: Lane, _: Sequence[Lane]) -> dict[str, Row]:
        return {"tcp": broken if len(one.cores) > 1 else ROW}

    with pytest.raises(LoadsDoNotCount, match="in a lane beside others is rejected: machine_busy: it is"):
        trials.one_round(lanes, [(0,), (1,)], 1, beside)
    with pytest.raises(EyelevelError, match="has the machine to itself is rejected: machine_busy: it is"):
        trials.one_round(lanes, [(0,), (1,)], 1, whole)
