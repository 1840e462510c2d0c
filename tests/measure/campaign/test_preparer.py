"""Runs are prepared while nothing is measured, and begin when no film is being analysed.

Loads are simulated here; real ones are in `tests/measure/run/test_turn.py`.
"""

import threading
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from factories import rejected
from support import scripted
from support.scripted import ScriptedSlot, one_page, row_of, scripted_campaign

from base.errors import EyelevelError
from dataset.run_files import ATTEMPT
from dataset.table import Row, Run, read_rows
from films.policy import ALL_FILMS
from measure.campaign import analyses as analyses_module
from measure.campaign.block import Block, measure_block
from measure.campaign.method import PAGES, Method, is_made
from measure.campaign.preparer import STALE_S, Preparer
from measure.campaign.results import Results
from measure.campaign.store import FolderStore
from measure.host.affinity import Layout
from measure.host.idle_priority import IdlePriority, Policy
from measure.run.load import NO_CALLS, Load, Moments, Observers
from measure.run.setting import Circumstances, Setting
from tuning import networks, protocols

RUNS = tuple(Run("site", "dsl", "tcp", number) for number in (1, 2, 3))


@dataclass(frozen=True)
class ScriptedMethod(Method):
    """A method whose loads are simulated; `events` records the events in order. When a run ends, its film has already
    been analysed."""

    events: list[str] = field(default_factory=list)
    endings: dict[Path, threading.Event] = field(default_factory=dict)
    load_age_s: float = 1.0
    load_fault: str = ""

    def prepare(
        self,
        setting: Setting,
        layout: Layout | None,
        folder: Path,
        attempt: int = 1,
        *,
        idle: IdlePriority | None = None,
    ) -> Load | None:
        self.events.append(f"prepare {folder.name}" + (" idle" if idle else ""))
        return cast(Load, ScriptedLoad(self, folder))

    def make(
        self,
        setting: Setting,
        circumstances: Circumstances,
        folder: Path,
        attempt: int = 1,
        *,
        preparation: Load | None = None,
        moments: Moments = NO_CALLS,
    ) -> None:
        self.events.append(f"make {folder.name}" + (" prepared" if preparation else ""))
        self.endings[folder] = threading.Event()
        moments.over()
        self.events.append(f"made {folder.name}")
        (folder / ATTEMPT).touch()
        self.endings[folder].set()

    def analyse(self, folder: Path) -> None:
        assert is_made(folder) or self.endings[folder].wait(20)
        self.events.append(f"analysed {folder.name}")

    def judge(self, setting: Setting, run: Run, attempt: int, folder: Path, campaign: Path) -> Row:
        self.events.append(f"judge {folder.name}")
        return row_of(run, attempt=attempt, folder=str(folder.relative_to(campaign)))


class ScriptedLoad:
    """A load that records its end, with the age and the fault that its `method` sets."""

    def __init__(self, method: ScriptedMethod, folder: Path) -> None:
        self.method, self.events, self.folder = method, method.events, folder

    def age_s(self) -> float:
        return self.method.load_age_s

    def has_ended(self) -> bool:
        return self.method.load_fault == "it has failed"

    def await_ready(self) -> None:
        self.events.append(f"ready {self.folder.name}")

    def lift(self) -> None:
        if self.method.load_fault == "it cannot be lifted":
            raise EyelevelError("no group")
        self.events.append(f"lift {self.folder.name}")

    def close(self) -> None:
        self.events.append(f"close {self.folder.name}")


@pytest.fixture(scope="module")
def setting(tmp_path_factory: pytest.TempPathFactory) -> Setting:
    site = one_page(tmp_path_factory.mktemp("site") / "site")
    return Setting(site, networks.load()["dsl"], protocols.load()["tcp"])


def measured(folder: Path, setting: Setting, method: Method, *, real_time: bool = True) -> FolderStore:
    store = FolderStore(folder)
    block = Block(1, dict.fromkeys(RUNS, setting), method, 0, ALL_FILMS)
    with Preparer(store) as preparer:
        measure_block(block, store, ScriptedSlot(real_time=real_time), print, preparer)
    return store


def test_the_next_run_is_prepared_when_one_is_over_and_begins_when_its_film_is_analysed(
    tmp_path: Path, setting: Setting
) -> None:
    method = ScriptedMethod()
    measured(tmp_path, setting, method)
    assert method.events == [
        *("make 1-1", "prepare 2-1", "made 1-1", "analysed 1-1"),
        *("make 2-1 prepared", "prepare 3-1", "made 2-1", "analysed 2-1"),
        *("make 3-1 prepared", "made 3-1", "analysed 3-1"),
        *("judge 1-1", "judge 2-1", "judge 3-1"),
    ]


def test_a_film_is_analysed_once_from_the_moment_when_its_run_is_over(tmp_path: Path, setting: Setting) -> None:
    analysed = threading.Event()

    class Patient(ScriptedMethod):
        def make(self, *_: object, moments: Moments = NO_CALLS, **__: object) -> None:
            moments.over()
            assert analysed.wait(20)
            analysed.clear()
            self.events.append("made")

        def analyse(self, folder: Path) -> None:
            self.events.append(f"analysed {folder.name}")
            analysed.set()

    method = Patient()
    measured(tmp_path, setting, method)
    events = [event for event in method.events if not event.startswith(("prepare", "judge"))]
    assert events == ["analysed 1-1", "made", "analysed 2-1", "made", "analysed 3-1", "made"]


@dataclass(frozen=True)
class QuietMethod(ScriptedMethod):
    """A method whose pages are quiet for a while before their loads are over."""

    def make(
        self,
        setting: Setting,
        circumstances: Circumstances,
        folder: Path,
        attempt: int = 1,
        *,
        preparation: Load | None = None,
        moments: Moments = NO_CALLS,
    ) -> None:
        self.events.append(f"quiet {folder.name}" + (" beside another" if moments.quiet() else ""))
        super().make(setting, circumstances, folder, attempt, preparation=preparation, moments=moments)


def test_the_next_run_is_prepared_in_the_quiet_time_at_idle_priority_until_the_run_is_over(
    tmp_path: Path, setting: Setting
) -> None:
    method, store = QuietMethod(), FolderStore(tmp_path)
    block = Block(1, dict.fromkeys(RUNS[:2], setting), method, 0, ALL_FILMS)
    with Preparer(store, Policy()) as preparer:
        measure_block(block, store, ScriptedSlot(), print, preparer)
    assert method.events[:9] == [
        *("prepare 2-1 idle", "quiet 1-1 beside another", "make 1-1", "lift 2-1", "made 1-1", "analysed 1-1"),
        *("quiet 2-1", "make 2-1 prepared", "made 2-1"),
    ]


def test_without_idle_priority_nothing_is_prepared_in_the_quiet_time(tmp_path: Path, setting: Setting) -> None:
    method, store = QuietMethod(), FolderStore(tmp_path)
    block = Block(1, dict.fromkeys(RUNS[:2], setting), method, 0, ALL_FILMS)
    with Preparer(store) as preparer:
        measure_block(block, store, ScriptedSlot(), print, preparer)
    assert method.events[:3] == ["quiet 1-1", "make 1-1", "prepare 2-1"]


def test_without_real_time_priority_a_film_is_analysed_when_its_replay_has_ended(
    tmp_path: Path, setting: Setting
) -> None:
    method = ScriptedMethod()
    measured(tmp_path, setting, method, real_time=False)
    events = [event for event in method.events if event.startswith(("made", "analysed"))]
    assert events == [f"{what} {number}-1" for number in (1, 2, 3) for what in ("made", "analysed")]


@pytest.mark.parametrize("fault", ["another is next", "it cannot be lifted", "it has failed"])
def test_what_was_prepared_early_and_is_of_no_use_ends_and_another_is_prepared(
    tmp_path: Path, setting: Setting, fault: str
) -> None:
    method, store = ScriptedMethod(load_fault=fault), FolderStore(tmp_path)
    with Preparer(store, Policy()) as preparer:
        assert preparer.prepare(lambda: (RUNS[0], setting), method, None, early=True)
        run = RUNS[1] if fault == "another is next" else RUNS[0]
        preparer.prepare(lambda: (run, setting), method, None)
        assert preparer.take(run)
    assert method.events == ["prepare 1-1 idle", "close 1-1", f"prepare {run.number}-1"]


def test_films_of_long_runs_are_analysed_when_all_runs_are_made(
    tmp_path: Path, setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(analyses_module, "BRIEF_S", -1.0)
    method = ScriptedMethod()
    measured(tmp_path, setting, method)
    assert [event for event in method.events if event.startswith(("make", "analysed"))][:3] == [
        "make 1-1",
        "make 2-1 prepared",
        "make 3-1 prepared",
    ]
    assert sorted(event for event in method.events if event.startswith("analysed")) == [
        "analysed 1-1",
        "analysed 2-1",
        "analysed 3-1",
    ]


def test_what_was_made_before_a_stop_is_neither_prepared_nor_made(tmp_path: Path, setting: Setting) -> None:
    method = ScriptedMethod()
    (FolderStore(tmp_path).empty_run_folder(RUNS[1], 1) / ATTEMPT).touch()
    measured(tmp_path, setting, method)
    assert [event for event in method.events if "2-1" in event] == ["analysed 2-1", "judge 2-1"]
    assert "make 3-1 prepared" in method.events


@pytest.mark.parametrize("fault", [KeyboardInterrupt(), EyelevelError("no disk"), OSError("no disk")])
def test_what_ends_a_block_ends_what_is_prepared_and_removes_its_folder(
    tmp_path: Path, setting: Setting, fault: Exception
) -> None:
    class Interrupted(ScriptedMethod):
        def make(
            self,
            setting: Setting,
            circumstances: Circumstances,
            folder: Path,
            attempt: int = 1,
            *,
            preparation: Load | None = None,
            moments: Moments = NO_CALLS,
        ) -> None:
            moments.over()
            raise fault

        def analyse(self, folder: Path) -> None:
            pass

    method = Interrupted()
    with pytest.raises(type(fault)):
        measured(tmp_path, setting, method)
    assert method.events == ["prepare 2-1", "close 2-1"]
    assert {path.name for path in tmp_path.glob("runs/*/*/*/*")} == {"1-1"}


def test_a_run_that_does_not_count_leaves_the_prepared_one_in_its_place(tmp_path: Path, setting: Setting) -> None:
    class FirstFails(ScriptedMethod):
        def judge(self, setting: Setting, run: Run, attempt: int, folder: Path, campaign: Path) -> Row:
            row = super().judge(setting, run, attempt, folder, campaign)
            return rejected("load_failed: it broke", row) if (run.number, attempt) == (1, 1) else row

    method, store = FirstFails(), FolderStore(tmp_path)
    block = Block(1, dict.fromkeys(RUNS, setting), method, 1, ALL_FILMS)
    with Preparer(store) as preparer:
        measure_block(block, store, ScriptedSlot(), print, preparer)
    assert [event for event in method.events if event.startswith("make ")] == [
        "make 1-1",
        "make 2-1 prepared",
        "make 3-1 prepared",
        "make 1-2",
    ]
    assert not any(event.startswith("close") for event in method.events)


@pytest.mark.parametrize("fault", [OSError("no space"), EyelevelError("no server")])
def test_a_run_that_cannot_be_prepared_is_made_all_the_same(tmp_path: Path, setting: Setting, fault: Exception) -> None:
    class Unprepared(ScriptedMethod):
        def prepare(
            self,
            setting: Setting,
            layout: Layout | None,
            folder: Path,
            attempt: int = 1,
            *,
            idle: IdlePriority | None = None,
        ) -> Load | None:
            raise fault

    method = Unprepared()
    store = measured(tmp_path, setting, method)
    assert [row.valid for row in store.rows] == [True] * 3
    assert "make 2-1" in method.events


def test_the_first_run_of_the_next_block_is_prepared_too_and_begins_after_the_canary(
    tmp_path: Path, setting: Setting
) -> None:
    method, store = ScriptedMethod(), FolderStore(tmp_path)
    blocks = [Block(number, {run: setting}, method, 0, ALL_FILMS) for number, run in enumerate(RUNS[:2], start=1)]
    slot = ScriptedSlot(look=lambda: method.events.append("canary"))
    with Preparer(store) as preparer:
        for block, run in zip(blocks, (RUNS[1], RUNS[2]), strict=True):
            after = partial(lambda run: (run, setting), run)
            measure_block(block, store, slot, print, preparer, after)
    assert method.events == [
        *("canary", "make 1-1", "prepare 2-1", "made 1-1", "analysed 1-1", "judge 1-1"),
        *("ready 2-1", "canary", "make 2-1 prepared", "prepare 3-1", "made 2-1", "analysed 2-1", "judge 2-1"),
        "close 3-1",
    ]
    assert {path.name for path in tmp_path.glob("runs/*/*/*/*")} == {"1-1", "2-1"}


def test_what_was_prepared_in_vain_or_long_ago_ends_before_another_run_begins(tmp_path: Path, setting: Setting) -> None:
    method, store = ScriptedMethod(), FolderStore(tmp_path)
    with Preparer(store) as preparer:
        preparer.prepare(lambda: (RUNS[0], setting), method, None)
        assert preparer.take(RUNS[1]) is None
        assert method.events == ["prepare 1-1", "close 1-1"]
        method.events.clear()
        # Waiting for another run (`settle`) also closes a load that was prepared in vain, instead of waiting for it.
        preparer.prepare(lambda: (RUNS[0], setting), method, None)
        preparer.settle(RUNS[1])
        assert method.events == ["prepare 1-1", "close 1-1"]
        method.events.clear()
        preparer.prepare(lambda: (RUNS[0], setting), replace(method, load_age_s=STALE_S), None)
        assert preparer.take(RUNS[0]) is None
    assert method.events == ["prepare 1-1", "close 1-1"]
    assert [path.name for path in tmp_path.glob("runs/*/*/*/*")] == []


def test_what_was_made_before_a_stop_is_not_overwritten_by_preparing_it(tmp_path: Path, setting: Setting) -> None:
    method, store = ScriptedMethod(), FolderStore(tmp_path)
    (store.empty_run_folder(RUNS[0], 1) / ATTEMPT).touch()
    with Preparer(store) as preparer:
        preparer.prepare(lambda: (RUNS[0], setting), method, None)
    assert method.events == []
    assert is_made(store.run_folder(RUNS[0], 1))


@pytest.mark.parametrize("enough", [False, True])
def test_a_campaign_prepares_what_its_plan_has_next_and_ends_it_when_it_is_not_needed(
    tmp_path: Path, enough: bool
) -> None:
    method = ScriptedMethod()
    campaign = scripted_campaign(tmp_path, "dsl", "tcp", method=method)
    scripted.measured(campaign, enough=lambda folder: [("site", "dsl")] if enough and read_rows(folder) else [])
    ending = ["close 2-1"] if enough else ["ready 2-1", "make 2-1 prepared", "made 2-1", "analysed 2-1", "judge 2-1"]
    assert method.events == ["make 1-1", "prepare 2-1", "made 1-1", "analysed 1-1", "judge 1-1", *ending]
    assert len(list(campaign.folder.glob("runs/*/*/*/*"))) == (1 if enough else 2)


def test_a_campaign_that_goes_on_removes_what_was_prepared_when_it_was_killed(tmp_path: Path) -> None:
    results = Results(tmp_path)
    for name in ("1-1", "2-1", "notes"):
        (tmp_path / "runs" / "site" / "dsl" / "tcp" / name).mkdir(parents=True)
    (results.run_folder(RUNS[0], 1) / ATTEMPT).touch()
    results.remove_unmade()
    assert {path.name for path in tmp_path.glob("runs/*/*/*/*")} == {"1-1", "notes"}


def test_what_a_network_does_in_time_does_not_begin_before_the_run(tmp_path: Path, setting: Setting) -> None:
    assert PAGES.may_be_prepared(setting, tmp_path)
    changes: list[dict[str, Any]] = [
        {"drop_up_at_ms": (1.0,)},
        {"drop_down_at_ms": (1.0,)},
        {"drop_up_packets": (1,)},
        {"drop_down_packets": (1,)},
        {"up_trace": "a"},
        {"down_trace": "a"},
    ]
    for change in changes:
        network = replace(setting.network, **change)
        assert PAGES.prepare(replace(setting, network=network), None, tmp_path) is None, change


def test_what_looks_on_does_so_from_the_beginning_of_the_run(tmp_path: Path, setting: Setting) -> None:
    class Watched(Method):
        def observers(self, setting: Setting, folder: Path) -> Observers:
            return Observers(monitor=("true",))

    assert Watched().prepare(setting, None, tmp_path) is None
