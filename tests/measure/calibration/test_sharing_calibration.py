"""How many loads can share processors is measured with all of them at work, and one at a time; here, loads are
simulated."""

import threading
from collections import defaultdict
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from factories import ROW, rejected
from support.lanes import NotedMethod
from support.scripted import lane_thread

from base.errors import EyelevelError
from dataset.table import Row, Run
from measure.calibration.calibration import LoadsDoNotCount
from measure.calibration.equivalence import BESIDE, WHOLE
from measure.calibration.sharing import PROTOCOLS, Pages, one_round, session, times_of
from measure.host.lanes import Lane, Lanes
from measure.run.setting import Circumstances, Setting
from record.demo import generate
from record.site import write_site
from tuning import networks, protocols

PATIENCE_S = 60
# All lanes of a test have the same processors.
PLACES = tuple(Lane(number, (0,)) for number in (1, 2, 3))


@pytest.fixture
def pages(tmp_path: Path) -> Pages:
    """Two pages over both protocols."""
    site, mss, known = write_site(generate("demo-light"), tmp_path / "site"), networks.load()["mss"], protocols.load()
    of_page = {name: Setting(site, mss.lossless, known[name]) for name in PROTOCOLS}
    return {"one": of_page, "other": of_page}


TIMES = {"plt": 1000.0, "si": 500.0, "fcp": 400.0, "lcp": 450.0}


class NotedTimes(NotedMethod):
    """Loads that take TIMES."""

    def judge(self, setting: Setting, run: Run, attempt: int, folder: Path, campaign: Path) -> Row:
        return replace(super().judge(setting, run, attempt, folder, campaign), metrics=TIMES)


class Meeting(NotedTimes):
    """Loads that are noted as they begin; the first one of each lane ends only when all lanes have begun one."""

    barrier = threading.Barrier(len(PLACES))
    blocks: defaultdict[int, list[tuple[int, str]]] = defaultdict(list)  # noqa: RUF012 (of one test)

    def make(self, setting: Setting, circumstances: Circumstances, folder: Path, attempt: int = 1, **_: object) -> None:
        of_lane = self.blocks[circumstances.lane or 0]
        of_lane.append((circumstances.block, setting.protocol.name))
        if len(of_lane) == 1:
            self.barrier.wait(PATIENCE_S)
        super().make(setting, circumstances, folder, attempt)


def test_each_lane_loads_each_page_once_more_while_all_others_load(pages: Pages) -> None:
    rows = session(PLACES, 3, pages, Meeting(), lane_thread)
    loaded = sorted((row.lane or 0, row.site, row.protocol) for row in rows)
    assert loaded == sorted(product((1, 2, 3), pages, PROTOCOLS))
    # A lane's first block is not among them, since other lanes may not have begun by then.
    assert all(row.block > 1 for row in rows)


def test_one_load_at_a_time_is_not_preceded_by_another(pages: Pages) -> None:
    rows = session(PLACES[:1], 1, pages, NotedTimes(), lane_thread)
    assert sorted((row.block, row.site) for row in rows) == [(1, "other"), (1, "other"), (2, "one"), (2, "one")]


def test_times_are_the_geometric_means_over_pages_and_lanes() -> None:
    metrics = {"plt": 100.0, "si": 10.0, "fcp": 10.0, "lcp": 10.0}
    rows = [
        replace(ROW, protocol="quic", metrics=metrics),
        replace(ROW, protocol="quic", metrics={**metrics, "plt": 400.0}),
    ]
    times = times_of(rows)
    assert set(times) == {"PLT over quic", "SI over quic", "FCP over quic", "LCP over quic"}
    assert times["PLT over quic"] == pytest.approx(200.0)


def test_a_round_has_both_conditions(pages: Pages) -> None:
    times = one_round(PLACES, 3, pages, 1, NotedTimes(), lane_thread)
    assert list(times) == [WHOLE, BESIDE]
    expected = {f"{metric.upper()} over {name}": value for metric, value in TIMES.items() for name in PROTOCOLS}
    assert times[WHOLE] == pytest.approx(expected)
    assert times[BESIDE] == pytest.approx(expected)


class Broken(NotedTimes):
    """Loads that do not count in lanes other than the first."""

    def judge(self, setting: Setting, run: Run, attempt: int, folder: Path, campaign: Path) -> Row:
        row = super().judge(setting, run, attempt, folder, campaign)
        return row if row.lane == 1 else rejected("machine_busy: it is", row)


class NeverCounting(NotedTimes):
    """Loads that do not count."""

    def judge(self, setting: Setting, run: Run, attempt: int, folder: Path, campaign: Path) -> Row:
        return rejected("machine_busy: it is", super().judge(setting, run, attempt, folder, campaign))


def test_a_load_that_does_not_count_says_under_which_condition(pages: Pages) -> None:
    with pytest.raises(LoadsDoNotCount, match="a load next to others is rejected: machine_busy: it is"):
        one_round(PLACES, 3, pages, 1, Broken(), lane_thread)
    with pytest.raises(EyelevelError, match="has the machine to itself is rejected: machine_busy: it is"):
        one_round(PLACES, 3, pages, 1, NeverCounting(), lane_thread)


def test_a_network_without_its_losses_is_otherwise_the_same() -> None:
    mss = networks.load()["mss"]
    assert mss.loss == 0.06
    assert mss.lossless == replace(mss, loss=0)
    bursts = replace(mss, burst_packets=3.0, retransmit_ms=10.0)
    assert bursts.lossless == mss.lossless


def test_all_lanes_of_a_trial_share_their_cores() -> None:
    assert Lanes(1, (Lane(1, (0, 1)),), at_once={"mss": 3}).places() == tuple(Lane(n, (0, 1)) for n in (1, 2, 3))
