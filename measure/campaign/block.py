"""One block on one machine: every open run of it, one after another, and again those that do not count.

    canary, paces  →  each run is made, its film analysed  →  paces  →  each is judged  →  once more for those rejected

Before and after the runs it is looked whether the paces of their devices are kept (`measure.host.device_index`).

From the moment when nothing of a run is measured any more, its film is analysed. From then on, or from its quiet time
on at idle priority (`measure.host.idle_priority`), the next one is prepared (`preparer`). That begins when no film is
analysed any more (`analyses`), but where films have cores of their own (`affinity`), and processes (`analyst`).

    one run     ─── load, quiet ─┬─ browser's end ─┐
    its film                     ├─ analysed ──────┤
    the next                     └─ prepared ──────┴─ load, quiet ─┬─ …
"""

import math
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from dataset.table import Row, Run
from films.policy import ALL_FILMS, FilmPolicy
from measure.campaign.analyses import Analyses
from measure.campaign.analyst import analyse_apart
from measure.campaign.method import Method, is_made
from measure.campaign.preparer import NextRun, Preparer, no_next_run
from measure.campaign.slot import Slot
from measure.campaign.store import FolderStore
from measure.host.device_index import HERE
from measure.host.idle_priority import IdlePriority, idle_priority
from measure.instruments.pace import keep_index_after
from measure.run.load import Moments
from measure.run.setting import Setting
from tuning.devices import device_of


class Observer:
    """Learns of attempts as they begin and end. This one does nothing with it."""

    def begins(self, run: Run, attempt: int, lane: int | None = None) -> None:
        """An attempt at `run` begins, in `lane` if there are several."""

    def ends(self, run: Run, row: Row, *, given_up: bool) -> None:
        """Says that an attempt has been judged."""

    def warns(self, text: str, lane: int | None = None) -> None:
        """Something of the machine, or of `lane`, keeps runs from being made, or from counting."""


@dataclass(frozen=True)
class Block:
    """The open runs of one block, with their settings, how they are made, and how often each may be repeated;
    `earlier` as in `FolderStore`."""

    number: int
    settings: Mapping[Run, Setting]
    method: Method
    repeats: int
    films: FilmPolicy
    earlier: Mapping[Run, tuple[int, int]] = field(default_factory=dict)

    def open_in(self, store: FolderStore) -> "Block":
        """The runs of this block that are open in `store`, for a place that cannot see the store."""
        settings = {run: one for run, one in self.settings.items() if store.is_open(run, self.repeats)}
        earlier = {run: (store.attempts(run), store.failures(run)) for run in settings}
        return replace(self, settings=settings, earlier=earlier)


def measure_block(
    block: Block,
    store: FolderStore,
    slot: Slot,
    observer: Observer,
    preparer: Preparer | None = None,
    after: NextRun = no_next_run,
) -> None:
    """Measure `block`; every attempt's row is in `store` when this returns.

    `preparer` has what was prepared before, and what is prepared for later: the run that seems to be next `after` it.

    Raises EyelevelError when replays fail again and again.
    """
    if not preparer:
        # A single run has none after it.
        early: AbstractContextManager[IdlePriority | None]
        early = idle_priority() if len(block.settings) > 1 else nullcontext()
        with early as idle, Preparer(store, idle) as new:
            measure_block(block, store, slot, observer, new)
        return
    method = block.method
    while open_runs := [run for run in block.settings if store.is_open(run, block.repeats)]:
        folders = {run: store.run_folder(run, store.attempts(run) + 1) for run in open_runs}
        unmade_runs = [run for run in open_runs if not is_made(folders[run])]
        if unmade_runs:
            preparer.settle(unmade_runs[0])
        now = slot.circumstances(block.number, observer.warns) if unmade_runs else None
        layout = now.layout if now else None
        devices = {device for run in unmade_runs if (device := device_of(block.settings[run].loading.browser))}
        cores = layout.browser if layout else ()
        HERE.await_reached(devices, cores, observer.warns)
        analyse = partial(analyse_apart, method) if layout else method.analyse
        with Analyses(analyse, layout) as analyses:
            for run in open_runs:
                if run not in unmade_runs:
                    analyses.add(folders[run], math.inf)
            for number, run in enumerate(unmade_runs, start=1):
                assert now
                analyses.await_quiet()
                began_s, attempt = time.monotonic(), store.attempts(run) + 1
                observer.begins(run, attempt)
                if not (preparation := preparer.take(run)):
                    store.empty_run_folder(run, attempt)
                next_run = _first_of(block, unmade_runs[number:]) if unmade_runs[number:] else after
                prepare = partial(preparer.prepare, next_run, method, layout)
                method.make(
                    block.settings[run],
                    now,
                    folders[run],
                    attempt,
                    preparation=preparation,
                    moments=Moments(
                        quiet=partial(preparer.prepare_early, next_run, method, layout),
                        over=partial(_go_on, slot, prepare, analyses, folders[run], began_s),
                    ),
                )
                analyses.add(folders[run], time.monotonic() - began_s)  # of a run that was never over
            analyses.finish()
        paces = HERE.look_again(devices, cores)
        for run in unmade_runs:
            if device := device_of(block.settings[run].loading.browser):
                keep_index_after(folders[run], paces[device.name].index)
        for run in open_runs:
            row = method.judge(block.settings[run], run, store.attempts(run) + 1, folders[run], store.folder)
            store.keep_attempt(row)
            observer.ends(run, row, given_up=not row.valid and not store.is_open(run, block.repeats))
            slot.count(row)
        apply_policy(block.films, store.folder, store.rows[-len(open_runs) :])


def measure_one(run: Run, setting: Setting, method: Method, folder: Path, repeats: int) -> Row:
    """Load `setting` until the load counts, outside of any campaign; returns the row of the last attempt.

    The evidence of each attempt is in `folder`; `row.folder` says where. When it does not count after so many
    repeats, the row says why. Raises EyelevelError when replays fail again and again.
    """
    store = FolderStore(folder)
    measure_block(Block(1, {run: setting}, method, repeats, ALL_FILMS), store, Slot(), Observer())
    return store.rows[-1]


def _go_on(slot: Slot, prepare: Callable[[], object], analyses: Analyses, folder: Path, began_s: float) -> None:
    """Go on when nothing of the run in `folder` is measured any more; it began at `began_s` (monotonic)."""
    prepare()
    # Else it would be late while the browser ends, which counts against the run.
    if slot.has_real_time_priority():
        analyses.add(folder, time.monotonic() - began_s)


def _first_of(block: Block, runs: Sequence[Run]) -> NextRun:
    return lambda: (runs[0], block.settings[runs[0]])


def apply_policy(films: FilmPolicy, folder: Path, rows: Iterable[Row]) -> None:
    """Do with the films of the attempts in `rows` of the campaign in `folder` as `films` says, on all cores."""
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as workers:
        for film in [workers.submit(films.apply, folder / row.folder, row.run, valid=row.valid) for row in rows]:
            film.result()
