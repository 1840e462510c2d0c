"""The analyses of a block's films: when, on which cores, and in which process."""

import os
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from types import TracebackType

from measure.campaign.analyst import analyse_apart
from measure.campaign.method import Method
from measure.host.affinity import Layout

# A run's film is analysed while the next run is prepared, if the run took at most this long (s). Preparing keeps one
# core busy for more than 1 s; analysing takes another core about 0.1 s per second of film. The next run would wait for
# the analysis of a longer film for more time than that takes after all runs, when every core analyses one.
BRIEF_S = 20.0


class Analyses:
    """Analyses the films in runs' folders as `method` says, some at once.

    Where `layout` has cores for analyses, they run while further runs are measured, in processes of their own.
    Elsewhere they run when nothing is measured: those of brief runs before the next run begins, the others at the end.
    An analysis that has not begun when the context ends is dropped.
    """

    def __init__(self, method: Method, layout: Layout | None) -> None:
        self._analyse = partial(analyse_apart, method) if layout else method.analyse
        self._has_cores = layout is not None
        cores = layout.analysis if layout else sorted(os.sched_getaffinity(0))
        # Affinity belongs to a thread, and the programs that it starts inherit it.
        self._workers = ThreadPoolExecutor(len(cores), initializer=os.sched_setaffinity, initargs=(0, cores))
        self._analyses: dict[Path, Future[None]] = {}
        self._later_films: list[Path] = []

    def __enter__(self) -> "Analyses":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._workers.shutdown(cancel_futures=True)

    def add(self, folder: Path, seconds: float) -> None:
        """Analyse the film in `folder`, of a run that took `seconds`, unless this has been requested before."""
        if folder in self._analyses or folder in self._later_films:
            return
        if self._has_cores or seconds <= BRIEF_S:
            self._analyses[folder] = self._workers.submit(self._analyse, folder)
        else:
            self._later_films.append(folder)

    def await_quiet(self) -> None:
        """Wait until a run can be measured: nothing is analysed on its cores."""
        if not self._has_cores:
            wait(self._analyses.values())

    def finish(self) -> None:
        """Wait until all films have been analysed."""
        later = [self._workers.submit(self._analyse, folder) for folder in self._later_films]
        for analysis in (*self._analyses.values(), *later):
            analysis.result()
