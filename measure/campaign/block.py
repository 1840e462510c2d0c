"""Measures one block on one machine: all its open runs in turn, and then again those that were rejected.

    canary, paces  →  each run is made, its film analysed  →  paces  →  each is judged  →  once more for those rejected

Before and after the runs, `measure.instruments.pace` checks that their devices keep their paces.

A run is over when nothing of it is measured any more; then its film is analysed, and the next run is prepared
(`preparer`). With idle priority (`measure.host.idle_priority`), the preparation begins earlier, in the run's quiet
time. The next run begins when no film is being analysed, unless films have cores of their own (`analyses`).

    one run     ─── load, quiet ─┬─ browser's end ─┐
    its film                     ├─ analysed ──────┤
    the next                     └─ prepared ──────┴─ load, quiet ─┬─ …

No run is prepared before its turn if blocks share processors (`Block.at_once`): its browser starts when no other load
there waits for its first paint (`measure.host.sharing`). Starting it, and analysing films, have idle priority there,
since other loads are being measured.
"""

import math
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from pathlib import Path

from dataset.table import Row, Run
from films.policy import FilmPolicy
from measure.campaign.analyses import Analyses
from measure.campaign.method import Method, is_made
from measure.campaign.preparer import NextRun, Preparer
from measure.campaign.slot import Slot
from measure.campaign.store import FolderStore
from measure.instruments.pace import at_their_paces
from measure.run.load import Moments
from measure.run.setting import Setting
from tuning.devices import device_of


@dataclass(frozen=True)
class Beginning:
    """An attempt at `run` begins, in `lane` if the machine has several."""

    run: Run
    attempt: int
    lane: int | None = None


@dataclass(frozen=True)
class Judgement:
    """An attempt has been judged, and its row is in the store. `given_up`: its run will not be repeated."""

    row: Row
    given_up: bool


@dataclass(frozen=True)
class Notice:
    """A problem of the machine, or of `lane`, keeps runs from being made or from counting; `text` describes it."""

    text: str
    lane: int | None = None


# A block's events, and the function that receives them.
Event = Beginning | Judgement | Notice
Notify = Callable[[Event], object]


@dataclass(frozen=True)
class Block:
    """The open runs of one block with their settings, how they are made, and how often each may be repeated; `earlier`
    is that of `FolderStore`. `at_once`: how many blocks are measured at once on the same processors. `sitting`: the
    number of the campaign's start in which it is measured, if it is of a campaign."""

    number: int
    settings: Mapping[Run, Setting]
    method: Method
    repeats: int
    films: FilmPolicy
    earlier: Mapping[Run, tuple[int, int]] = field(default_factory=dict)
    at_once: int = 1
    sitting: int | None = None

    @property
    def share(self) -> Fraction:
        """The share of its lane's processors that this block takes."""
        return Fraction(1, self.at_once)

    @property
    def is_shared(self) -> bool:
        """Whether other blocks are measured on the same processors meanwhile."""
        return self.at_once > 1

    def open_in(self, store: FolderStore) -> "Block":
        """This block with only the runs that are open in `store`, for a place that cannot see the store."""
        settings = {run: one for run, one in self.settings.items() if store.is_open(run, self.repeats)}
        earlier = {run: (store.attempts(run), store.failures(run)) for run in settings}
        return replace(self, settings=settings, earlier=earlier)


def measure_block(
    block: Block,
    store: FolderStore,
    slot: Slot,
    notify: Notify,
    preparer: Preparer,
    after: NextRun = lambda: None,
) -> None:
    """Measure `block`; when this returns, every attempt's row is in `store`. `notify` receives its events.

    `preparer` may hold a run that was prepared before. At the end, it prepares the run that is expected next (`after`).

    Raises EyelevelError when replays fail repeatedly.
    """
    method = block.method

    def warn(text: str) -> None:
        notify(Notice(text, slot.lane))

    while open_runs := [run for run in block.settings if store.is_open(run, block.repeats)]:
        folders = {run: store.run_folder(run, store.attempts(run) + 1) for run in open_runs}
        unmade_runs = [run for run in open_runs if not is_made(folders[run])]
        if unmade_runs:
            preparer.settle(unmade_runs[0])
        now = None
        if unmade_runs:
            now = replace(slot.circumstances(block.number, warn, shared=block.is_shared), sitting=block.sitting)
        layout = now.layout if now else None
        browsers = {folders[run]: block.settings[run].loading.browser for run in unmade_runs}
        devices = {folder: device for folder, browser in browsers.items() if (device := device_of(browser))}
        with at_their_paces(devices, layout, warn), Analyses(method, layout, idle=block.is_shared) as analyses:
            for run in open_runs:
                if run not in unmade_runs:
                    analyses.add(folders[run], math.inf)
            for number, run in enumerate(unmade_runs, start=1):
                assert now
                analyses.await_quiet()
                began_s, attempt = time.monotonic(), store.attempts(run) + 1
                notify(Beginning(run, attempt, slot.lane))
                if not (preparation := preparer.take(run)):
                    store.empty_run_folder(run, attempt)
                next_run = _first_of(block, unmade_runs[number:]) if unmade_runs[number:] else after
                next_run = _none if block.is_shared else next_run
                prepare = partial(preparer.prepare, next_run, method, layout)
                method.make(
                    block.settings[run],
                    now,
                    folders[run],
                    attempt,
                    preparation=preparation,
                    moments=Moments(
                        quiet=partial(prepare, early=True),
                        over=partial(_go_on, slot, prepare, analyses, folders[run], began_s),
                    ),
                )
                analyses.add(folders[run], time.monotonic() - began_s)  # for loads that failed before they were over
            analyses.finish()
        for run in open_runs:
            row = method.judge(block.settings[run], run, store.attempts(run) + 1, folders[run], store.folder)
            store.keep(row)
            notify(Judgement(row, given_up=store.is_given_up(run, block.repeats)))
            slot.count(row)
        apply_policy(block.films, store.folder, store.rows[-len(open_runs) :])


def _go_on(slot: Slot, prepare: Callable[[], object], analyses: Analyses, folder: Path, began_s: float) -> None:
    """Prepare the next run, and analyse the film in `folder`: its run began at `began_s` (monotonic), and its page
    is not measured any more."""
    prepare()
    # The emulated network runs until the browser has ended, and a run is rejected if its network was late at any time
    # until then. Without real-time priority, the analysis would make it late; then the film is analysed later.
    if slot.has_real_time_priority():
        analyses.add(folder, time.monotonic() - began_s)


def _none() -> None:
    """No next run."""


def _first_of(block: Block, runs: Sequence[Run]) -> NextRun:
    return lambda: (runs[0], block.settings[runs[0]])


def apply_policy(films: FilmPolicy, folder: Path, rows: Iterable[Row]) -> None:
    """Keep, shrink or delete the films of `rows` of the campaign in `folder`, as `films` says, on all cores."""
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as workers:
        for film in [workers.submit(films.apply, folder / row.folder, row.run, valid=row.valid) for row in rows]:
            film.result()
