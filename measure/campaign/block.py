"""One block on one machine: every run of it that is left, one after another, and again those that do not count.

    canary  →  each run is made  →  their films are analysed  →  each is judged  →  once more for those rejected

Films are analysed when no run is being made, or on cores of their own (`affinity`) while the next is.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from base.errors import EyelevelError
from measure.campaign.attempt import Circumstances, Setting, is_made, judge, make
from measure.campaign.plan import Run
from measure.gates import REPLAY
from measure.host.affinity import Layout
from measure.run.evidence import analyse_film
from measure.run.films import FilmPolicy
from measure.table import Row

# After so many the rest of the campaign would fare the same.
REPLAY_FAILURES_IN_A_ROW = 5


class Store(Protocol):
    """Where a block's attempts go: the campaign's folder, or one that travels there."""

    folder: Path

    def attempts(self, run: Run) -> int:
        """How often `run` has been tried."""

    def failures(self, run: Run) -> int:
        """How often `run` has been tried and did not count, for which it may be given up."""

    def is_valid(self, run: Run) -> bool:
        """Whether `run` has been measured."""

    def run_folder(self, run: Run, attempt: int) -> Path:
        """Where an attempt's evidence lies."""

    def empty_run_folder(self, run: Run, attempt: int) -> Path:
        """The same, made anew."""

    def append(self, row: Row) -> None:
        """Add the row of an attempt."""


class Watcher(Protocol):
    """Who is told of attempts as they begin and end."""

    def begins(self, run: Run, attempt: int) -> None:
        """An attempt at `run` begins."""

    def ends(self, run: Run, row: Row, *, given_up: bool) -> None:
        """It has been judged."""


class ReplayFailures:
    """Ends a campaign when the testbed itself fails again and again on a machine: the rest would fare the same."""

    def __init__(self) -> None:
        self._in_a_row = 0

    def count(self, row: Row) -> None:
        """Take note of `row`. Raises EyelevelError after too many failed replays in a row."""
        self._in_a_row = self._in_a_row + 1 if row.reason and row.reason.gate == REPLAY.name else 0
        if self._in_a_row == REPLAY_FAILURES_IN_A_ROW:
            raise EyelevelError(f"{self._in_a_row} replays in a row failed, the last with: {row.reason}")


@dataclass(frozen=True)
class Block:
    """The runs of one block that are left, with their settings, and how often each may be repeated."""

    number: int
    settings: Mapping[Run, Setting]
    repeats: int
    films: FilmPolicy


def is_left(run: Run, store: Store, repeats: int) -> bool:
    """Whether `run` is still to be measured: not yet valid, and not given up."""
    return not store.is_valid(run) and store.failures(run) <= repeats


def measure_block(
    block: Block, store: Store, circumstances: Callable[[], Circumstances], failures: ReplayFailures, watch: Watcher
) -> None:
    """Measure `block`; every attempt's row is in `store` when this returns. `circumstances` sings the canary.

    Raises EyelevelError when replays fail again and again.
    """
    while left := [run for run in block.settings if is_left(run, store, block.repeats)]:
        folders = {run: store.run_folder(run, store.attempts(run) + 1) for run in left}
        now = None if all(is_made(folder) for folder in folders.values()) else circumstances()
        with _Analysts(now.layout if now else None) as analysts:
            for run in left:
                attempt = store.attempts(run) + 1
                if now and not is_made(folders[run]):
                    watch.begins(run, attempt)
                    make(block.settings[run], now, store.empty_run_folder(run, attempt), attempt)
                analysts.take(folders[run])
            analysts.finish()
        judged: dict[Run, bool] = {}
        for run in left:
            row = judge(block.settings[run], run, store.attempts(run) + 1, folders[run], store.folder)
            store.append(row)
            judged[run] = row.valid
            watch.ends(run, row, given_up=not is_left(run, store, block.repeats))
            failures.count(row)
        keep_films(block.films, [(folders[run], run.number, valid) for run, valid in judged.items()])


def keep_films(films: FilmPolicy, judged: Iterable[tuple[Path, int, bool]]) -> None:
    """Do with the films of runs (their folders, numbers, and whether they count) as `films` says, on all cores."""
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as workers:
        for done in [workers.submit(films.apply, folder, run, valid=valid) for folder, run, valid in judged]:
            done.result()


class _Analysts:
    """Workers for films: with cores of their own they begin at once, else when `finish` says that no run is made.

    To be used in a `with` block, which ends with them.
    """

    def __init__(self, layout: Layout | None) -> None:
        self._begin_at_once = layout is not None
        cores = layout.analysis if layout else sorted(os.sched_getaffinity(0))
        # Affinity is a thread's own, and the programs that it starts inherit it.
        self._workers = ThreadPoolExecutor(len(cores), initializer=os.sched_setaffinity, initargs=(0, cores))
        self._waiting: list[Path] = []
        self._begun: list[Future[None]] = []

    def __enter__(self) -> "_Analysts":
        return self

    def __exit__(self, *_: object) -> None:
        self._workers.shutdown(cancel_futures=True)

    def take(self, folder: Path) -> None:
        """The run in `folder` has been made."""
        self._waiting.append(folder)
        if self._begin_at_once:
            self._begin()

    def finish(self) -> None:
        """Analyse what has not been analysed; returns when all is."""
        self._begin()
        for future in self._begun:
            future.result()

    def _begin(self) -> None:
        self._begun += [self._workers.submit(analyse_film, folder) for folder in self._waiting]
        self._waiting.clear()
