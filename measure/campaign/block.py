"""One block on one machine: every open run of it, one after another, and again those that do not count.

    canary  →  each run is made  →  their films are analysed  →  each is judged  →  once more for those rejected

Films are analysed when no run is being made, or on cores of their own (`affinity`), by processes of their own, while
the next is.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from base.errors import EyelevelError
from measure.campaign.analyst import analyse_apart
from measure.campaign.method import Method, is_made
from measure.campaign.slot import machine_name
from measure.campaign.store import FolderStore
from measure.gates import REPLAY
from measure.run.films import ALL_FILMS, FilmPolicy
from measure.run.setting import Circumstances, Setting
from measure.table import Row, Run

# After so many the rest of the campaign would fare the same.
REPLAY_FAILURES_IN_A_ROW = 5


class Observer:
    """Learns of attempts as they begin and end. This one does nothing with it."""

    def begins(self, run: Run, attempt: int) -> None:
        """An attempt at `run` begins."""

    def ends(self, run: Run, row: Row, *, given_up: bool) -> None:
        """It has been judged."""


class ReplayFailures:
    """Ends a campaign when the testbed itself fails again and again on a machine: the rest would fare the same."""

    def __init__(self) -> None:
        self._in_a_row = 0

    def count(self, row: Row) -> None:
        """Count `row`. Raises EyelevelError after too many failed replays in a row."""
        self._in_a_row = self._in_a_row + 1 if row.gate == REPLAY.name else 0
        if self._in_a_row == REPLAY_FAILURES_IN_A_ROW:
            raise EyelevelError(f"{self._in_a_row} replays in a row failed, the last with: {row.reason}")


@dataclass(frozen=True)
class Block:
    """The open runs of one block, with their settings, how they are made, and how often each may be repeated."""

    number: int
    settings: Mapping[Run, Setting]
    method: Method
    repeats: int
    films: FilmPolicy


def measure_block(
    block: Block,
    store: FolderStore,
    circumstances: Callable[[], Circumstances],
    failures: ReplayFailures,
    observer: Observer,
) -> None:
    """Measure `block`; every attempt's row is in `store` when this returns. `circumstances` times the canary.

    Raises EyelevelError when replays fail again and again.
    """
    method = block.method
    while open_runs := [run for run in block.settings if store.is_open(run, block.repeats)]:
        folders = {run: store.run_folder(run, store.attempts(run) + 1) for run in open_runs}
        now = None if all(is_made(folder) for folder in folders.values()) else circumstances()
        layout = now.layout if now else None
        with _analysts(layout.analysis if layout else sorted(os.sched_getaffinity(0))) as analysts:
            analyses = []
            for run in open_runs:
                attempt = store.attempts(run) + 1
                if now and not is_made(folders[run]):
                    observer.begins(run, attempt)
                    method.make(block.settings[run], now, store.empty_run_folder(run, attempt), attempt)
                if layout:
                    analyses.append(analysts.submit(analyse_apart, method, folders[run]))
            if not layout:
                analyses = [analysts.submit(method.analyse, folder) for folder in folders.values()]
            for analysis in analyses:
                analysis.result()
        for run in open_runs:
            row = method.judge(block.settings[run], run, store.attempts(run) + 1, folders[run], store.folder)
            store.keep_attempt(row)
            observer.ends(run, row, given_up=not row.valid and not store.is_open(run, block.repeats))
            failures.count(row)
        apply_policy(block.films, store.folder, store.rows[-len(open_runs) :])


def measure_one(run: Run, setting: Setting, method: Method, folder: Path, repeats: int) -> Row:
    """Load `setting` until the load counts, outside of any campaign; returns the row of the last attempt.

    The evidence of each attempt is in `folder`; `row.folder` says where. When it does not count after so many
    repeats, the row says why. Raises EyelevelError when replays fail again and again.
    """
    store = FolderStore(folder)
    circumstances = Circumstances(1, machine_name())
    block = Block(1, {run: setting}, method, repeats, ALL_FILMS)
    measure_block(block, store, lambda: circumstances, ReplayFailures(), Observer())
    return store.rows[-1]


def apply_policy(films: FilmPolicy, folder: Path, rows: Iterable[Row]) -> None:
    """Do with the films of the attempts in `rows` of the campaign in `folder` as `films` says, on all cores."""
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as workers:
        for film in [workers.submit(films.apply, folder / row.folder, row.run, valid=row.valid) for row in rows]:
            film.result()


@contextmanager
def _analysts(cores: Sequence[int]) -> Iterator[ThreadPoolExecutor]:
    """Workers for films on `cores`, one on each; what has not begun when the block ends is not done any more."""
    # Affinity belongs to a thread, and the programs that it starts inherit it.
    workers = ThreadPoolExecutor(len(cores), initializer=os.sched_setaffinity, initargs=(0, cores))
    try:
        yield workers
    finally:
        workers.shutdown(cancel_futures=True)
