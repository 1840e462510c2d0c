"""What a person sees of a campaign while it runs: a line for each run, and how long it will take."""

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from statistics import mean

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from measure.plan import Run
from measure.results import Row


class Watch:
    """Tells of a campaign's runs, and estimates the time left from how long runs of each network took."""

    def __init__(self, console: Console, left: list[Run], done: int) -> None:
        """`left`: the runs still to be made; `done`: how many have been made before."""
        self._console = console
        self._left = set(left)
        self._total = len(left) + done
        self._seconds: dict[str, list[float]] = defaultdict(list)
        self._progress: Progress | None = None
        self._task = TaskID(0)

    @contextmanager
    def shown(self) -> Iterator["Watch"]:
        """Show a bar below the lines, on a terminal."""
        if not self._console.is_terminal:
            yield self
            return
        told, left = TextColumn("{task.description}"), TextColumn("{task.fields[left]}")
        with Progress(told, BarColumn(), MofNCompleteColumn(), left, console=self._console, transient=True) as progress:
            self._progress = progress
            done = self._total - len(self._left)
            self._task = progress.add_task("", total=self._total, completed=done, left="")
            yield self

    def begins(self, run: Run, attempt: int) -> None:
        """An attempt at `run` begins."""
        if self._progress:
            again = f" (attempt {attempt})" if attempt > 1 else ""
            self._progress.update(self._task, description=f"{run}{again}")

    def ends(self, run: Run, row: Row, given_up: bool) -> None:
        """An attempt at `run` ended as `row` tells."""
        self._seconds[run.network].append(row.seconds)
        if row.valid or given_up:
            self._left.discard(run)
        done, left = self._total - len(self._left), self.time_left()
        if self._progress:
            self._progress.update(self._task, completed=done, left=left)
        width = len(str(self._total))
        if row.valid:
            told = f"PLT {row.plt:.0f} ms, SI {row.si:.0f} ms, {row.requests} requests, {row.missed} missed"
        else:
            told = f"invalid: {row.reason}" + ("; given up" if given_up else "; once more")
        ending = "" if self._progress else f" · {left}"
        line = f"[{done:{width}}/{self._total}] {run}: {told} · {row.seconds:.1f} s{ending}"
        self._console.print(line, highlight=False, markup=False, soft_wrap=True, style=None if row.valid else "yellow")

    def time_left(self) -> str:
        """How long the runs left will take, in words."""
        known = [second for seconds in self._seconds.values() for second in seconds]
        if not known or not self._left:
            return "" if self._left else "done"
        usual = mean(known)
        each = {network: mean(seconds) for network, seconds in self._seconds.items()}
        return in_words(sum(each.get(run.network, usual) for run in self._left)) + " left"


def in_words(seconds: float) -> str:
    """A duration as a person says it: `40 s`, `12 min`, `3 h 05 min`, `2 d 4 h`."""
    minutes = round(seconds / 60)
    if seconds < 90:
        return f"{seconds:.0f} s"
    if minutes < 90:
        return f"{minutes} min"
    if minutes < 48 * 60:
        return f"{minutes // 60} h {minutes % 60:02} min"
    return f"{minutes // 1440} d {minutes % 1440 // 60} h"


def now_iso() -> str:
    """The time of day, with its offset from UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%S%z")
