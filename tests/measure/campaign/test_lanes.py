"""Runs in lanes: each block stays in one lane; different blocks run in parallel, on separate cores."""

import errno
import io
import json
import os
import subprocess
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from fractions import Fraction
from functools import partial
from itertools import permutations
from multiprocessing import Pipe
from pathlib import Path
from typing import Any

import pytest
from factories import ROW
from rich.console import Console
from support.lanes import CoresMethod
from support.leaks import own_groups
from support.scripted import ScriptedSlot, lane_thread, row_of, scripted_campaign, work_of

from base.errors import EyelevelError
from base.files import write_json
from base.places import PROJECT
from base.processes import first_readable
from dataset.run_files import ATTEMPT, PROCESSOR, TIMES
from dataset.table import Row, read_rows, require_document
from films.policy import FilmPolicy
from measure.campaign import slot
from measure.campaign.block import Beginning, Judgement, Notice
from measure.campaign.campaign import Campaign
from measure.campaign.engine import measure
from measure.campaign.forecast import Forecaster
from measure.campaign.lane import Ending, LaneSetting, Message, RunningLane, running_lane
from measure.campaign.lane_process import serve
from measure.campaign.lanes import ComingBlocks, deal_out, measure_in_lanes, sharing_folders
from measure.campaign.progress import ProgressDisplay
from measure.campaign.results import Results, keep_lanes, lanes_fault, opened
from measure.campaign.slot import canaries_of, machine_name
from measure.campaign.status import status
from measure.campaign.store import FolderStore
from measure.host.idle_priority import idle_priority
from measure.host.lanes import ONE_LANE, Lane, Lanes, lanes_of
from measure.run.evidence import read_circumstances, read_evidence
from measure.run.setting import Circumstances, Setting
from record.demo import generate
from record.site import write_site
from tuning import networks, protocols

PATIENCE_S = 60
TWO = (Lane(1, (0,)), Lane(2, (1,)))


@pytest.fixture
def campaign(tmp_path: Path) -> Campaign:
    """Eight blocks of two runs."""
    return scripted_campaign(
        tmp_path,
        "dsl lte",
        "tcp quic",
        runs=4,
        method=CoresMethod(),
        lanes=Lanes(2, TWO),
        films=FilmPolicy("none"),
        canary_s=1000.0,  # (one canary for each lane)
    )


def new_store(campaign: Campaign) -> FolderStore:
    """A store in the campaign's folder, which is created."""
    campaign.folder.mkdir(parents=True)
    return FolderStore(campaign.folder)


class Thread:
    """Stands in for the process of a lane."""

    def __init__(self, thread: threading.Thread) -> None:
        self._thread = thread

    def wait(self) -> int:
        self._thread.join(PATIENCE_S)
        return 1


@pytest.fixture
def lanes(campaign: Campaign) -> Iterator[list[RunningLane]]:
    """Two lanes that are threads of this process."""
    running, threads = [], []
    for lane in TWO:
        ours, theirs = Pipe()
        slot = ScriptedSlot(lane.number)
        threads.append(threading.Thread(target=serve, args=(campaign.folder, slot, theirs)))
        threads[-1].start()
        process: Any = Thread(threads[-1])
        running.append(RunningLane(lane, process, ours))
    yield running
    for one in running:
        one.connection.close()
    for thread in threads:
        thread.join(PATIENCE_S)
        assert not thread.is_alive()


class Meeting(CoresMethod):
    """Runs that record their beginning and end; the first run of each lane ends only after the other lane's has
    begun."""

    barrier = threading.Barrier(2)
    events: list[tuple[str, int, int]] = []  # noqa: RUF012 (of one test)

    def make(self, setting: Setting, circumstances: Circumstances, folder: Path, attempt: int = 1, **_: object) -> None:
        lane = circumstances.lane or 0
        self.events.append(("begins", lane, circumstances.block))
        if sum(event[:2] == ("begins", lane) for event in self.events) == 1:
            self.barrier.wait(PATIENCE_S)
        (folder / ATTEMPT).write_text(
            f'{{"block": {circumstances.block}, "machine": "{circumstances.machine}", "lane": {lane}}}'
        )
        self.events.append(("ends", lane, circumstances.block))


class Full(CoresMethod):
    """Runs for which the disk has no space."""

    def make(self, *_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "film.mp4")


def display(lanes: int = 2, file: io.StringIO | None = None) -> ProgressDisplay:
    return ProgressDisplay(Console(file=file or io.StringIO(), width=200), [], 0, lanes=Lanes(lanes))


def test_blocks_run_beside_each_other_and_the_runs_of_a_block_one_after_another(
    campaign: Campaign, lanes: list[RunningLane]
) -> None:
    campaign = replace(campaign, method=Meeting())
    printed = io.StringIO()
    with opened(campaign.folder, campaign.document()) as results:
        ends: list[int] = []
        deal_out(lanes, work_of(campaign, results, display(file=printed), end=lambda block: ends.append(block.number)))
    rows = read_rows(campaign.folder)
    assert sorted(str(row.of) for row in rows) == sorted(str(run) for block in campaign.plan() for run in block)
    assert sorted(ends) == list(range(1, 9))
    # If the first two had not run at the same time, the barrier would have broken.
    assert [event[0] for event in Meeting.events[:2]] == ["begins", "begins"]
    of_lane = defaultdict(list)
    for _, lane, block in Meeting.events:
        of_lane[lane].append(block)
    assert set(of_lane) == {1, 2}
    for blocks_of_lane in of_lane.values():
        # The four events of a block come one after another, without an event of another block between them.
        assert blocks_of_lane == [block for block in dict.fromkeys(blocks_of_lane) for _ in range(4)]
    assert {row.block: row.lane for row in rows} == {
        block: lane for lane, blocks_of_lane in of_lane.items() for block in blocks_of_lane
    }
    assert "· lane 1 ·" in printed.getvalue() and "· lane 2 ·" in printed.getvalue()


def begin_blocks(campaign: Campaign, results: Results, lane_of: Callable[[int], int]) -> None:
    """Create the results of a stopped campaign: one run of each block, in the lane that `lane_of` returns for its
    number."""
    for number, (run, *_) in enumerate(campaign.plan(), start=1):
        where = {"lane": lane_of(number), "machine": machine_name(), "folder": f"runs/{number}"}
        results.keep(row_of(run, block=number, **where))


def test_what_is_made_later_of_a_block_is_made_in_its_lane(campaign: Campaign, lanes: list[RunningLane]) -> None:
    with opened(campaign.folder, campaign.document()) as results:
        begin_blocks(campaign, results, lambda number: 2 if number > 1 else 1)
        deal_out(lanes, work_of(campaign, results, display()))
        rows = read_rows(campaign.folder)
    assert len(rows) == sum(map(len, campaign.plan()))
    assert {row.lane for row in rows if row.block == 1} == {1}
    assert {row.lane for row in rows if row.block != 1} == {2}


def test_a_block_that_has_waited_for_its_lane_does_not_begin_when_the_budget_is_used_up(
    campaign: Campaign, lanes: list[RunningLane]
) -> None:
    ends: list[int] = []
    with opened(campaign.folder, campaign.document()) as results:
        begin_blocks(campaign, results, lambda _: 2)
        work = work_of(campaign, results, display(), lambda _: not ends, lambda block: ends.append(block.number))
        deal_out(lanes, work)
    assert ends == [1]


def test_blocks_that_another_machine_or_lane_began_are_made_in_any(campaign: Campaign) -> None:
    blocks = [campaign.block(number, runs) for number, runs in enumerate(campaign.plan(), start=1)]
    rows = [replace(ROW, block=1, lane=2, machine="another"), replace(ROW, block=2, lane=3, machine=machine_name())]
    store = FolderStore(campaign.folder, [*rows, replace(ROW, block=3, lane=2, machine=machine_name())])
    coming = ComingBlocks(blocks[:4], store, {1, 2})
    numbers = [block.number for block in (coming.next_in(1), coming.next_in(1), coming.next_in(1)) if block]
    assert numbers == [1, 2, 4]
    assert coming.next_in(1) is None
    last = coming.next_in(2)
    assert last and last.number == 3


class Counted(CoresMethod):
    """Runs that record how many of them are made at once on each network. On mss, a run waits until another one
    begins."""

    under_way: list[str] = []  # noqa: RUF012 (of one test)
    most: Counter[str] = Counter()  # noqa: RUF012
    pair = threading.Barrier(2)

    def make(self, setting: Setting, circumstances: Circumstances, folder: Path, attempt: int = 1, **_: object) -> None:
        network = setting.network.name
        self.under_way.append(network)
        if network == "mss":
            self.pair.wait(PATIENCE_S)
        assert set(self.under_way) == {network}
        self.most[network] = max(self.most[network], len(self.under_way))
        self.under_way.remove(network)
        (folder / ATTEMPT).write_text(
            f'{{"block": {circumstances.block}, "machine": "{circumstances.machine}", "lane": {circumstances.lane}}}'
        )


def test_blocks_share_cores_on_some_networks_and_have_them_alone_on_others(tmp_path: Path) -> None:
    lanes = Lanes(1, (Lane(1, (0,)),), at_once={"mss": 2})
    campaign = scripted_campaign(
        tmp_path, "mss dsl", "tcp", runs=4, method=Counted(), lanes=lanes, films=FilmPolicy("none")
    )
    with opened(campaign.folder, campaign.document()) as results, ExitStack() as stack:
        running = [
            stack.enter_context(lane_thread(LaneSetting(lane, campaign.folder))) for lane in campaign.lanes.places()
        ]
        deal_out(running, work_of(campaign, results, display()))
    assert Counted.most == {"mss": 2, "dsl": 1}
    assert len(read_rows(campaign.folder)) == 8


def test_a_block_that_does_not_fit_is_not_overtaken(campaign: Campaign) -> None:
    first, second, *_ = (campaign.block(number, runs) for number, runs in enumerate(campaign.plan(), start=1))
    shared = replace(second, at_once=4)
    coming = ComingBlocks([first, shared], FolderStore(campaign.folder), {1, 2})
    assert coming.next_in(1, Fraction(3, 4)) is None
    assert coming.next_in(2, Fraction(1, 4)) is None
    assert coming.next_in(2, Fraction(1)) == first
    assert coming.next_in(1, Fraction(1, 4)) == shared
    assert coming.next_in(1) is None


def test_lanes_of_the_same_cores_agree_in_a_folder(tmp_path: Path) -> None:
    alone, *group = Lane(1, (0,)), Lane(2, (1,)), Lane(3, (1,))
    folder_of = sharing_folders(tmp_path, [alone, *group])
    assert folder_of[alone] is None
    assert folder_of[group[0]] == folder_of[group[1]] == tmp_path / "sharing-2"
    assert (tmp_path / "sharing-2").is_dir()


def test_a_lane_goes_on_only_when_its_row_is_kept(campaign: Campaign, lanes: list[RunningLane]) -> None:
    lane, _ = lanes
    store = new_store(campaign)
    block = campaign.block(1, campaign.plan()[0])
    lane.begin(block, store)
    while not isinstance(message := lane.message(), Row):
        pass
    # The next row has been made, but is not sent yet.
    assert not lane.connection.poll(0.2)
    lane.go_on()
    assert lane.message() == Judgement(message, given_up=False)
    second = lane.message()
    assert isinstance(second, Row) and second.of != message.of
    lane.go_on()
    assert lane.message() == Judgement(second, given_up=False)
    assert isinstance(lane.message(), Ending)


def test_what_ends_a_lane_ends_the_campaign_as_it_is(campaign: Campaign, lanes: list[RunningLane]) -> None:
    block = campaign.block(1, campaign.plan()[0])
    lanes[0].begin(replace(block, method=Full()), new_store(campaign))
    with pytest.raises(OSError) as failure:
        while True:
            lanes[0].message()
    assert (failure.value.errno, failure.value.filename) == (errno.ENOSPC, "film.mp4")
    (note,) = failure.value.__notes__
    assert note.startswith("in lane 1: Traceback") and "in make" in note


def test_a_run_beyond_its_lane_does_not_count_whatever_lane_judges_it(tmp_path: Path) -> None:
    document = {"clock_shift_s": 0.0, "slowness": 1.0, "failure": None, "lane": 2, "lane_cores": [2, 3]}
    write_json(tmp_path / ATTEMPT, document)
    for affinity, strange in (([2, 3], ()), ([2], ()), ([0, 1, 2], (0, 1))):
        write_json(tmp_path / PROCESSOR, {"affinity": affinity})
        assert read_evidence(tmp_path).strange_cores == strange == read_circumstances(tmp_path).strange_cores
    write_json(tmp_path / ATTEMPT, {**document, "lane": None, "lane_cores": None})
    assert read_evidence(tmp_path).strange_cores == ()


def test_each_lane_has_canaries_of_its_own() -> None:
    rows = [replace(ROW, lane=lane, canary_cpu_ms=ms) for lane, ms in ((1, 50.0), (2, 60.0), (1, 51.0), (None, 70.0))]
    assert [canary.cpu_ms for canary in canaries_of("here", rows, 1)] == [50.0, 51.0]
    assert [canary.cpu_ms for canary in canaries_of("here", rows)] == [70.0]


# Lanes that are processes.


@pytest.mark.needs_browser
@pytest.mark.needs_namespaces
@pytest.mark.loads
@pytest.mark.timing  # at idle priority, no browser starts next to other tests
def test_loads_that_share_processors_count_and_their_busy_beginnings_do_not_meet(tmp_path: Path) -> None:
    site = write_site(generate("demo-light"), tmp_path / "demo-light")
    campaign = Campaign(
        tmp_path / "results" / "shared",
        {site.name: site},
        {"dsl": networks.load()["dsl"]},
        {"quic": protocols.load()["quic"]},
        runs=2,
        seed=1,
        films=FilmPolicy("none"),
        lanes=Lanes(at_once={"dsl": 2}),
    )
    measure(campaign, partial(ProgressDisplay, Console(file=io.StringIO()), lanes=campaign.lanes), measure_in_lanes)
    one, other = (row for row in read_rows(campaign.folder) if row.valid)
    assert {one.lane, other.lane} == {1, 2}
    with idle_priority(own_groups()) as idle:
        for row in (one, other):
            assert json.loads((campaign.folder / row.folder / ATTEMPT).read_text())["started_idle"] == bool(idle)
    times = [json.loads((campaign.folder / row.folder / TIMES).read_text()) for row in (one, other)]
    # On a busy machine, the other browser, which starts at idle priority, may need longer than the first load takes.
    overlap_s = min(each["visit_end"] for each in times) - max(each["begin"] for each in times)
    for row in (one, other):
        assert row.concurrent_loads and 1 <= row.concurrent_loads <= 2
        # The loads note their times just before and after these.
        assert abs(overlap_s) < 1 or (row.concurrent_loads > 1) == (overlap_s > 0)
    for mine, others in permutations(times):
        assert mine["start"] < mine["ready"] <= mine["begin"] < mine["painted"]
        for begins, ends in (("start", "ready"), ("begin", "painted")):
            assert mine["ready"] <= others[begins] or others[ends] <= mine["start"]
    # Without lanes, a load is alone.
    assert "at_once" not in replace(campaign, lanes=ONE_LANE).document().settings.content()
    assert campaign.document().settings.content()["at_once"] == {"dsl": 2}


@pytest.fixture
def support(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the processes of lanes find the runs of these tests."""
    monkeypatch.setenv("PYTHONPATH", str(PROJECT / "tests"))


@pytest.mark.slow
@pytest.mark.needs_namespaces
@pytest.mark.needs_two_cores
@pytest.mark.usefixtures("support")
def test_what_a_lane_starts_stays_on_its_cores_and_this_process_comes_back(campaign: Campaign) -> None:
    before = os.sched_getaffinity(0)
    campaign = replace(campaign, runs=1, lanes=Lanes(2, lanes_of(2)))
    printed = io.StringIO()
    watch = partial(ProgressDisplay, Console(file=printed, width=200), lanes=campaign.lanes)
    measure(campaign, watch, measure_in_lanes)
    rows = read_rows(campaign.folder)
    assert len(rows) == 4 and {row.lane for row in rows} == {1, 2}
    assert "4 runs to be made in 2 lanes" in printed.getvalue()
    for row in rows:
        document = json.loads((campaign.folder / row.folder / "processor.json").read_text())
        assert row.lane and document["affinity"] == list(campaign.lanes.lanes[row.lane - 1].cores)
    assert os.sched_getaffinity(0) == before
    kept = require_document(campaign.folder)
    assert kept.settings.lanes == status(campaign.folder).lanes.count == 2
    assert kept.lanes[machine_name()]["cores"] == [list(lane.cores) for lane in campaign.lanes.lanes]
    assert kept.cores_of_a_run == len(campaign.lanes.lanes[0].cores)


def first_beside_notices(lane: RunningLane) -> Message:
    """The lane's next message that is no notice: beside other tests, its trial of idle priority may fail."""
    while isinstance(message := lane.message(), Notice):
        pass
    return message


@pytest.mark.slow
@pytest.mark.needs_namespaces
@pytest.mark.usefixtures("support")
def test_a_lane_that_dies_is_told_and_one_that_never_ends_is_ended(campaign: Campaign) -> None:
    lane = lanes_of(1)[0]
    campaign = replace(campaign, method=CoresMethod(fault="tcp", endless="quic"))
    fatal, endless = ([run for run in campaign.plan()[0] if run.protocol == name] for name in ("tcp", "quic"))
    store = new_store(campaign)
    with running_lane(LaneSetting(lane, campaign.folder)) as running:
        running.begin(campaign.block(1, fatal), store)
        assert isinstance(first_beside_notices(running), Beginning)
        with pytest.raises(EyelevelError, match="lane 1 has ended with status -9"):
            running.message()
    with running_lane(LaneSetting(lane, campaign.folder)) as running:
        running.begin(campaign.block(1, endless), store)
        assert isinstance(first_beside_notices(running), Beginning)
    # (Only the lane's process could complete the message, and it does not.)
    with pytest.raises(EyelevelError):
        running.message()


def test_a_lane_ends_with_who_started_it(tmp_path: Path) -> None:
    script = """
import sys
from pathlib import Path
from measure.campaign.block import Beginning
from measure.campaign.lane import Ending, LaneSetting, running_lane
from measure.host.lanes import lanes_of
with running_lane(LaneSetting(lanes_of(1)[0], Path(sys.argv[1]))) as lane:
    print(lane.process, flush=True)
    sys.stdin.read()
"""
    environment = {**os.environ, "PYTHONPATH": str(PROJECT)}
    streams: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "env": environment}
    with subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], **streams) as starter:
        assert starter.stdout
        lane = os.pidfd_open(int(starter.stdout.readline()))
        try:
            assert first_readable(lane, timeout_s=0) is None
            starter.kill()
            assert first_readable(lane, timeout_s=PATIENCE_S) == lane
        finally:
            os.close(lane)


def test_a_campaign_does_not_go_on_in_another_number_of_lanes(campaign: Campaign) -> None:
    with opened(campaign.folder, campaign.document()):
        pass
    message = "begun with other settings: lanes was 2, is 1"
    with (
        pytest.raises(EyelevelError, match=message),
        opened(campaign.folder, replace(campaign, lanes=ONE_LANE).document()),
    ):
        pass
    with opened(campaign.folder, campaign.document()):
        pass


def test_a_campaign_without_lanes_is_what_it_was(campaign: Campaign) -> None:
    document = replace(campaign, lanes=ONE_LANE).document()
    assert "lanes" not in document.settings.content() and "lanes" not in document.content()
    with opened(campaign.folder, document):
        pass
    with pytest.raises(EyelevelError, match="lanes was 1, is 2"), opened(campaign.folder, campaign.document()):
        pass


def test_the_lanes_of_a_machine_keep_their_cores_and_their_calibration(campaign: Campaign) -> None:
    calibrated = replace(campaign, lanes=replace(campaign.lanes, calibration={"reason": "measured"}))
    with opened(campaign.folder, calibrated.document()) as results:
        keep_lanes(results.folder, "worker", Lanes(2, TWO).record())
    with opened(campaign.folder, campaign.document()):
        pass
    document = require_document(campaign.folder)
    assert document.lanes[machine_name()]["calibration"] == {"reason": "measured"}
    assert set(document.lanes) == {machine_name(), "worker"}
    assert lanes_fault(document, "worker", Lanes(2, TWO).record()) is None
    assert lanes_fault(document, "other", Lanes(2, TWO).record()) is None
    other = Lanes(2, tuple(replace(lane, cores=(7,)) for lane in TWO)).record()
    assert "the lanes of worker had the processors" in (lanes_fault(document, "worker", other) or "")


def test_runs_at_once_take_less_time(campaign: Campaign) -> None:
    row = replace(ROW, site="site", network="dsl", seconds=10.0)
    runs = [replace(row.of, number=number) for number in (1, 2, 3)]
    for lanes in (Lanes(2), Lanes(at_once={"dsl": 4}), Lanes(2, at_once={"dsl": 2})):
        model = campaign.run_model()
        whole = Forecaster([], campaign.folder, model).forecast(runs)
        shared = Forecaster([], campaign.folder, model, lanes.runs_at_once).forecast(runs)
        assert shared.seconds == pytest.approx(whole.seconds / lanes.runs_at_once("dsl"))
        assert shared.bytes == whole.bytes
        # Two runs have been made at once, in the time of one.
        rows = [row, replace(row, run=2, lane=2)]
        assert Forecaster(rows, campaign.folder, model, lanes.runs_at_once).forecast(runs).seconds == 15.0
        assert Forecaster(rows, campaign.folder, model).forecast(runs).seconds == 30.0


def test_a_machine_s_name_has_no_part_of_its_confidential_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = []
    for number in ("0123456789abcdef0123456789abcdef", "0123456789abcdef0123456789abcdee"):
        (tmp_path / "machine-id").write_text(f"{number}\n")
        monkeypatch.setattr(slot, "MACHINE_ID", tmp_path / "machine-id")
        names.append(machine_name())
        assert machine_name() == names[-1] and "01234567" not in names[-1]
    assert len(set(names)) == 2
