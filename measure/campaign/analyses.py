"""When a block's films are analysed, on which cores, and in which process."""

import os
from collections.abc import Collection
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from types import TracebackType

from measure.campaign.analyst import analyse_apart
from measure.campaign.method import Method
from measure.host.affinity import Layout

# The film of a run that took at most this long (s) is analysed while the next run is prepared. Preparing keeps one core
# busy for more than 1 s; analysing takes another core about 0.1 s per second of film. With longer films, the next run
# would wait for the analysis, and it is faster to analyse such films after all runs, on all cores at once.
BRIEF_S = 20.0


class Analyses:
    """Analyses the films in runs' folders with `method`, several at once.

    If `layout` has cores for analyses, films are analysed in processes of their own while further runs are measured.
    Otherwise films are analysed while nothing is measured: those of brief runs before the next run begins, the others
    at the end. When the context ends, analyses that have not begun are dropped. With `idle`, analyses have idle
    priority (SCHED_IDLE, sched(7)).
    """

    def __init__(self, method: Method, layout: Layout | None, *, idle: bool = False) -> None:
        self._analyse = partial(analyse_apart, method) if layout else method.analyse
        self._has_cores = layout is not None
        cores = layout.analysis if layout else sorted(os.sched_getaffinity(0))
        self._workers = ThreadPoolExecutor(len(cores), initializer=_begin_worker, initargs=(cores, idle))
        self._analyses: dict[Path, Future[None]] = {}
        self._later_films: list[Path] = []

    def __enter__(self) -> "Analyses":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._workers.shutdown(cancel_futures=True)

    def add(self, folder: Path, seconds: float) -> None:
        """Analyse the film in `folder`, of a run that took `seconds`. A second request for the same folder does
        nothing."""
        if folder in self._analyses or folder in self._later_films:
            return
        if self._has_cores or seconds <= BRIEF_S:
            self._analyses[folder] = self._workers.submit(self._analyse, folder)
        else:
            self._later_films.append(folder)

    def await_quiet(self) -> None:
        """Wait until a run can be measured: no analysis runs on its cores."""
        if not self._has_cores:
            wait(self._analyses.values())

    def finish(self) -> None:
        """Wait until all films have been analysed."""
        later = [self._workers.submit(self._analyse, folder) for folder in self._later_films]
        for analysis in (*self._analyses.values(), *later):
            analysis.result()


def _begin_worker(cores: Collection[int], idle: bool) -> None:
    # Both belong to a thread; programs that the thread starts inherit them.
    os.sched_setaffinity(0, cores)
    if idle:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
