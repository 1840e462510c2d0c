"""Blocks on their way to workers and back, on a simulated cluster: which workers come and go, and what they measure.

Real clusters are in tests/proof/test_campaign_faults.py and benchmarks/cluster.
"""

import io
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event
from typing import Any, cast

import pytest
from rich.console import Console
from support.scripted import ScriptedCampaign, row_of, scripted_campaign, work_of

from base.errors import EyelevelError
from dataset.run_files import ATTEMPT
from dataset.settings import CampaignSettings
from dataset.table import CampaignDocument
from measure.campaign import cluster as module
from measure.campaign.block import Block
from measure.campaign.campaign import Campaign
from measure.campaign.cluster import MOST_WAITING, Cluster, Dispatch, Scheduler
from measure.campaign.progress import ProgressDisplay
from measure.campaign.remote import Introduction, MeasuredBlock, introduce
from measure.campaign.results import opened
from measure.host.lanes import Lanes
from measure.sites.completeness import digest
from record.site import Site

HERE = {"chromium": "156"}
LOST, UNREACHABLE, BROKEN = "never ends", "does not come", "comes in pieces"
PATIENCE_S = 120


class MadeUpFuture:
    """The future of a request to a worker: it has the result `value`, or never gets one (LOST).

    An UNREACHABLE value exists, but does not arrive until the future is cancelled.
    """

    def __init__(self, value: object) -> None:
        self.value = value
        self.is_cancelled = Event()
        self.status = "pending" if value == LOST else "error" if isinstance(value, EyelevelError) else "finished"

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        if self.status != "pending":
            callback(self)

    def result(self) -> object:
        if self.value == UNREACHABLE:
            assert self.is_cancelled.wait(PATIENCE_S)
            raise CancelledError
        if self.value == BROKEN:
            raise OSError("the connection to the scheduler is lost")
        return self.value

    def exception(self) -> object:
        return self.value

    def cancel(self) -> None:
        self.is_cancelled.set()


def measured(block: Block) -> MeasuredBlock:
    rows = tuple(row_of(run, block=block.number) for run in block.settings)
    return MeasuredBlock(rows, ({ATTEMPT: b"{}"},) * len(rows), ())


@dataclass
class MadeUpCluster:
    """Stands in for a `Scheduler` with the workers `present`. `events` records what happens.

    `outcome`: the result of a block at a worker. `may_begin`: whether a block would end within the budget. `look_s`:
    the interval between looks for workers; 0 means that each turn looks, and none waits. `dispatch`: the class that
    hands out the blocks.
    """

    campaign: Campaign
    present: list[str] = field(default_factory=lambda: ["a"])
    outcome: Callable[[str, Block], object] = lambda _, block: measured(block)
    may_begin: Callable[[Block], bool] = lambda _: True
    events: list[str] = field(default_factory=list)
    look_s: float = 0.0
    address: str = "tcp://127.0.0.1:1"
    dispatch: type[Dispatch] = Dispatch

    def workers(self) -> list[str]:
        return list(self.present)

    def submit(self, worker: str, function: Callable[..., object], *arguments: Any) -> MadeUpFuture:
        if function is introduce:
            self.events.append(f"{worker} is looked at")
            sites = {name: digest(site) for name, site in self.campaign.sites.items()}
            return MadeUpFuture(Introduction(f"machine of {worker}", HERE, sites))
        self.events.append(f"{worker} gets {arguments[0].number}")
        return MadeUpFuture(self.outcome(worker, arguments[0]))

    def measure(self, *, wholly: bool = True) -> str:
        """Measure the campaign, `wholly` unless its budget ends it earlier; return the output."""
        printed = io.StringIO()
        with opened(self.campaign.folder, CampaignDocument(CampaignSettings(seed=1, runs=1))) as results:
            display = ProgressDisplay(Console(file=printed, width=200), [], 0)
            work = work_of(self.campaign, results, display, self.may_begin, self.end)
            self.dispatch(Cluster(self.address, self.campaign), cast(Scheduler, self), work, self.look_s).run()
            assert wholly == all(results.is_valid(run) for block in self.campaign.plan() for run in block)
        return printed.getvalue()

    def end(self, block: Block) -> None:
        self.events.append(f"{block.number} is written")


@pytest.fixture
def cluster(tmp_path: Path) -> MadeUpCluster:
    """A cluster of one worker, with a campaign of four blocks."""
    return MadeUpCluster(scripted_campaign(tmp_path, "dsl", "tcp", runs=4, programs=HERE))


def test_a_worker_has_its_next_block_before_the_last_one_is_written(cluster: MadeUpCluster) -> None:
    cluster.look_s = 60.0
    cluster.measure()
    expected = ["a is looked at", "a gets 1", "a gets 2", "1 is written", "a gets 3", "2 is written", "a gets 4"]
    assert cluster.events == [*expected, "3 is written", "4 is written"]


def test_a_disk_that_is_slow_makes_workers_wait_in_the_end(cluster: MadeUpCluster) -> None:
    cluster.campaign = replace(cluster.campaign, runs=4 * MOST_WAITING)
    cluster.present = [f"worker {number}" for number in range(2 * MOST_WAITING)]
    most = 0

    class Watched(Dispatch):
        def _end(self, outcome: Any) -> None:
            nonlocal most
            super()._end(outcome)
            most = max(most, len(self._measured))

    cluster.dispatch = Watched
    cluster.measure()
    assert 0 < most <= MOST_WAITING


def test_a_block_whose_worker_is_gone_is_measured_elsewhere_while_others_deliver(cluster: MadeUpCluster) -> None:
    cluster.present = ["a", "b"]
    cluster.campaign = replace(cluster.campaign, runs=12)

    def outcome(worker: str, block: Block) -> object:
        if worker == "b":
            cluster.present = ["a"]
            return LOST
        return measured(block)

    cluster.outcome = outcome
    printed = cluster.measure()
    lost = next(event for event in cluster.events if event.startswith("b gets")).removeprefix("b gets ")
    again = cluster.events.index(f"a gets {lost}")
    assert again < cluster.events.index("a gets 12"), "it is not left for the end"
    assert f"the worker b no longer responds; block {lost} is measured again elsewhere" in printed


def test_a_worker_that_comes_back_under_its_old_address_is_looked_at_and_measures(cluster: MadeUpCluster) -> None:
    def outcome(worker: str, block: Block) -> object:
        if cluster.events.count("a is looked at") == 1:
            looks: Iterator[list[str]] = iter([[], []])
            cluster.present = Comings(["a"], looks)
            return LOST
        return measured(block)

    cluster.outcome = outcome
    assert "the worker a no longer responds" in cluster.measure()
    assert cluster.events.count("a is looked at") == 2


class Nobody(list[str]):
    """No workers; counts how often they are looked up."""

    looks = 0

    def __iter__(self) -> Iterator[str]:
        self.looks += 1
        return iter(())


class Comings(list[str]):
    """Workers that appear late: the first looks find the lists in `looks`, one each."""

    def __init__(self, workers: Sequence[str], looks: Any) -> None:
        super().__init__(workers)
        self._looks = looks

    def __iter__(self) -> Any:
        return iter(next(self._looks, list(super().__iter__())))


def lose_b(cluster: MadeUpCluster, result: object) -> None:
    """Add a second worker, which disappears when it has its first block, whose result is `result`."""
    cluster.present = ["a", "b"]

    def outcome(worker: str, block: Block) -> object:
        if worker == "b":
            cluster.present = ["a"]
            return result
        return measured(block)

    cluster.outcome = outcome


def test_a_result_whose_worker_dies_before_it_is_here_is_measured_again(cluster: MadeUpCluster) -> None:
    lose_b(cluster, UNREACHABLE)
    assert "the worker b no longer responds" in cluster.measure()


def test_a_worker_whose_result_is_lost_on_its_way_is_looked_at_and_measures_again(cluster: MadeUpCluster) -> None:
    outcomes = iter([BROKEN])
    cluster.outcome = lambda _, block: next(outcomes, None) or measured(block)
    assert "the worker a no longer responds; block 1 is measured again" in cluster.measure()
    assert cluster.events[:4] == ["a is looked at", "a gets 1", "a is looked at", "a gets 1"]


def test_a_block_whose_worker_is_gone_does_not_begin_again_when_the_budget_is_used_up(cluster: MadeUpCluster) -> None:
    lose_b(cluster, LOST)
    cluster.may_begin = lambda _: cluster.present == ["a", "b"]
    assert "the worker b no longer responds" in cluster.measure(wholly=False)
    lost = next(event for event in cluster.events if event.startswith("b gets")).removeprefix("b gets ")
    assert f"a gets {lost}" not in cluster.events


def test_a_campaign_that_has_no_worker_waits_for_one_within_its_budget(cluster: MadeUpCluster) -> None:
    cluster.present = nobody = Nobody()
    cluster.may_begin = lambda _: nobody.looks < 3
    assert "no worker is connected to tcp://127.0.0.1:1; waiting for one" in cluster.measure(wholly=False)
    assert cluster.events == []


def test_a_worker_that_cannot_measure_any_more_gets_no_more_work(cluster: MadeUpCluster) -> None:
    cluster.present = ["a", "b"]
    cluster.outcome = lambda worker, block: EyelevelError("it is busy") if worker == "b" else measured(block)
    assert "the worker b gets no more work: it is busy" in cluster.measure()
    assert sum(event.startswith("b gets") for event in cluster.events) == 1


def test_when_all_workers_are_refused_the_campaign_ends(cluster: MadeUpCluster) -> None:
    cluster.outcome = lambda *_: EyelevelError("it is busy")
    with pytest.raises(EyelevelError, match=r"none of the 1 workers of tcp://127\.0\.0\.1:1 can measure; see above"):
        cluster.measure()


def test_the_head_is_looked_at_once_however_many_workers_come(
    cluster: MadeUpCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[str] = []

    class Watched(ScriptedCampaign):
        def versions(self) -> dict[str, str]:
            looks.append("versions")
            return HERE

    def fingerprint(site: Site) -> str:
        looks.append("site")
        return digest(site)

    cluster.campaign = Watched(**vars(cluster.campaign))
    monkeypatch.setattr(module, "digest", fingerprint)
    cluster.present = [f"worker {number}" for number in range(20)]
    cluster.measure()
    assert looks == ["versions", "site"]
    assert sum(event.endswith("is looked at") for event in cluster.events) == 20


class Pending(MadeUpFuture):
    """A request whose result never comes."""

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        pass


def test_blocks_share_a_workers_processors_and_none_overtakes_one_that_needs_all(tmp_path: Path) -> None:
    campaign = scripted_campaign(tmp_path, "dsl mss", "tcp", runs=4, programs=HERE, lanes=Lanes(2, at_once={"mss": 2}))
    cluster = MadeUpCluster(campaign)
    given: list[tuple[int, int]] = []

    def submit(worker: str, function: Callable[..., object], *arguments: Any) -> MadeUpFuture:
        block, _, lane, _ = arguments
        given.append((lane, block.at_once))
        return Pending(None)

    cluster.submit = submit  # type: ignore[method-assign]
    head = Cluster(cluster.address, campaign)
    head._machines["a"] = "machine of a"
    with opened(campaign.folder, campaign.document()) as results:
        blocks = [campaign.block(number, runs) for number, runs in enumerate(campaign.plan(), start=1)]
        shared, whole = ([block for block in blocks if block.at_once == number] for number in (2, 1))
        work = replace(
            work_of(campaign, results, ProgressDisplay(Console(file=io.StringIO()), [], 0)),
            blocks=[shared[0], shared[1], shared[2], whole[0], shared[3]],
        )
        dispatch = Dispatch(head, cast(Scheduler, cluster), work)
        dispatch._workers = ["a"]
        dispatch._hand_out()
        # Lanes 1 and 2 have the same processors, and so have 3 and 4.
        assert given == [(1, 2), (2, 2), (3, 2)]
        for future in [future for future, ((_, lane), _) in dispatch._running.items() if lane == 3]:
            dispatch._running.pop(future)
        dispatch._hand_out()
        assert given[3:] == [(3, 1)]
