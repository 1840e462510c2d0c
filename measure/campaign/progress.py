"""The display of a campaign while it runs: a line for each run, and below it the state in a few lines of at most 80
columns: the present runs, when all will be done, and problems."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import inf

from rich.console import Console, Group
from rich.live import Live
from rich.progress import BarColumn, MofNCompleteColumn, Progress
from rich.text import Text

from base.words import clock_in, in_bytes, in_words, plural
from dataset.reasons import MANY_REJECTED, Reason
from dataset.table import Cell, GivenUp, Row, Run
from measure.campaign.block import Beginning, Event, Judgement, Notice
from measure.campaign.forecast import Forecast
from measure.host.lanes import ONE_LANE, Lanes

# The metrics in the line of a run.
LINE_METRICS = ("plt", "si")


class ProgressDisplay:
    """Prints a campaign's runs, and the time left by the latest forecast."""

    def __init__(
        self,
        console: Console,
        open_runs: Sequence[Run],
        done: int,
        *,
        plain: bool = False,
        lanes: Lanes = ONE_LANE,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`open_runs`: the runs to be made; `done`: how many were made before; `plain`: print lines only, for logs;
        `lanes`: how many runs are made at once; `clock`: the time in s."""
        self._console = console
        self._open = set(open_runs)
        self._open_in = Counter(run.cell for run in self._open)
        self._total = len(open_runs) + done
        self._rejected: Counter[str] = Counter()
        self._attempts = 0
        self._given_up = 0
        self._warnings: set[tuple[int | None, str]] = set()
        self._lanes = lanes
        self._clock = clock
        self._last_warning = ""
        # The present run of each lane, as a text.
        self._present: dict[int | None, str] = {}
        # How long a run of each cell takes by the latest forecast; and when, on the clock, the time limit ends.
        self._expected: Mapping[Cell, float] = {}
        self._limit_s = inf
        self._live = console.is_terminal and not plain
        columns = (BarColumn(bar_width=None), MofNCompleteColumn(), "{task.fields[left]}")
        self._progress = Progress(*columns, console=console, expand=True)
        self._task = self._progress.add_task("", total=self._total, completed=done, left="")
        self._now = Text(no_wrap=True, overflow="ellipsis")
        self._summary = Text(no_wrap=True, overflow="ellipsis")
        self._warning = Text(style="yellow", no_wrap=True, overflow="ellipsis")

    def expects(self, run_s: Mapping[Cell, float]) -> None:
        """Take a forecast: how long a run of each cell takes (s), with all lanes in use."""
        self._expected = run_s
        self._stands()

    @contextmanager
    def live(self, expected: Forecast, limit_s: float = inf, *, at_most: bool = False) -> Iterator["ProgressDisplay"]:
        """Print the forecast for all runs, as an upper limit if `at_most`; the campaign ends within `limit_s`. On a
        terminal, also show the campaign's state below the lines."""
        if self._open:
            self._limit_s = self._clock() + limit_s
            seconds = min(expected.seconds, limit_s)
            expectation = f"about {in_words(seconds)}, done {clock_in(seconds)}, {in_bytes(expected.bytes)}"
            what = f"{'at most ' if at_most else ''}{plural('run', len(self._open))} to be made"
            self._say(f"{what}{self._lanes}: {expectation}")
        if not self._live:
            yield self
            return
        self._stands()
        with Live(get_renderable=self.screen, console=self._console, transient=True):
            yield self

    def screen(self) -> Group:
        """The parts shown below the lines, without empty ones."""
        return Group(*(part for part in (self._now, self._progress, self._summary, self._warning) if part))

    def notify(self, event: Event) -> None:
        """Show an `event` of a block."""
        match event:
            case Beginning(run, attempt, lane):
                self._begins(run, attempt, lane)
            case Judgement(row, given_up):
                self._ends(row, given_up=given_up)
            case Notice(text, lane):
                self._warns(text, lane)

    def _begins(self, run: Run, attempt: int, lane: int | None) -> None:
        # Put this before the run, whose name may be too long for the line.
        again = f", attempt {attempt}" if attempt > 1 else ""
        self._present[lane] = f"now{f', lane {lane}' if lane else ''}{again}: {run}"
        self._now.plain = "\n".join(text for _, text in sorted(self._present.items(), key=lambda one: one[0] or 0))

    def _ends(self, row: Row, *, given_up: bool) -> None:
        run = row.of
        self._attempts += 1
        if row.valid or given_up:
            self._close([run])
        if row.valid:
            text = f"{_metrics(row)}{plural('request', row.requests)}, {row.missed} missed"
        else:
            self._rejected[row.gate] += 1
            self._given_up += given_up
            text = f"invalid: {row.reason}" + ("; given up" if given_up else "; once more")
        self._stands()
        done = self._total - len(self._open)
        ending = "" if self._live else f" · {self._left()}"
        lane = f" · lane {row.lane}" if row.lane else ""
        line = f"[{done:{len(str(self._total))}}/{self._total}] {run}: {text} · {row.seconds:.1f} s{lane}{ending}"
        self._say(line, style=None if row.valid else "yellow")

    def says(self, line: str) -> None:
        """Print a line."""
        self._say(line)

    def rejects(self, rows: Sequence[tuple[Row, Reason]]) -> None:
        """Show runs that no longer count, each with its reason."""
        for row, reason in rows:
            self._rejected[reason.gate] += 1
            if row.of not in self._open:
                self._open.add(row.of)
                self._open_in[row.of.cell] += 1
            self._say(f"{row.of}: rejected later: {reason}", style="yellow")
        self._stands()

    def gives_up(self, entry: GivenUp, runs: Iterable[Run]) -> None:
        """Show that a site on a network gets no more runs: these `runs` will not be made."""
        runs = [run for run in runs if run in self._open]
        self._given_up += len(runs)
        self._close(runs)
        self._say(str(entry), style="yellow")
        self._stands()

    def _warns(self, text: str, lane: int | None) -> None:
        """Print a warning; of warnings with the same first words, only the first."""
        if (beginning := (lane, " ".join(text.split()[:3]))) not in self._warnings:
            self._warnings.add(beginning)
            self._last_warning = text
            self._stands()
            self._say(f"warning: {f'lane {lane}: ' if lane else ''}{text}", style="yellow")

    def time_left(self) -> str:
        """How long the open runs will take, in words."""
        seconds = self.seconds_left()
        return "" if seconds is None else f"{in_words(seconds)} left" if self._open else "done"

    def _left(self) -> str:
        """The remaining time in words, and the time of day when all will be done."""
        seconds = self.seconds_left()
        return f"{self.time_left()}{f', done {clock_in(seconds)}' if seconds and self._open else ''}"

    def seconds_left(self) -> float | None:
        if not self._open:
            return 0.0
        if not self._expected:
            return None
        runs_s = sum(count * self._expected.get(cell, 0.0) for cell, count in self._open_in.items())
        return max(0.0, min(runs_s, self._limit_s - self._clock()))

    def _close(self, runs: Iterable[Run]) -> None:
        for run in runs:
            if run in self._open:
                self._open.remove(run)
                self._open_in[run.cell] -= 1

    def _stands(self) -> None:
        self._progress.update(self._task, completed=self._total - len(self._open), left=self._left())
        reasons = ", ".join(f"{gate} {count}" for gate, count in self._rejected.most_common())
        rejected = self._rejected.total()
        is_wrong = self._given_up or rejected > MANY_REJECTED * self._attempts
        # The reasons come last: they may be too many for the line.
        share = f"{rejected} of {plural('attempt', self._attempts)} rejected"
        self._summary.plain = f"{share}, runs given up: {self._given_up}{f'; {reasons}' if reasons else ''}"
        self._summary.style = "yellow" if is_wrong else "dim"
        if self._warnings:
            self._warning.plain = f"warnings: {len(self._warnings)}, last: {self._last_warning}"

    def _say(self, line: str, style: str | None = None) -> None:
        self._console.print(line, highlight=False, markup=False, soft_wrap=True, style=style)


def _metrics(row: Row) -> str:
    values = [(name.upper(), row.metrics.get(name)) for name in LINE_METRICS]
    return "".join(f"{name} {value:.0f} ms, " for name, value in values if value is not None)
