"""Shows the progress of long steps, one after another: the current step, and the time left."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

T = TypeVar("T")


class _TimeLeft(TimeRemainingColumn):
    """The time left, once it is known."""

    def render(self, task: Task) -> Text:
        return Text() if task.time_remaining is None else Text("time left ").append_text(super().render(task))


def each_shown(
    steps: Sequence[T], description: Callable[[T], str], expected_s: Callable[[T], float], console: Console
) -> Iterator[T]:
    """Yield each of `steps`, and show it on `console` while it runs; if that is not a terminal, print one line each.

    `expected_s` returns how long a step takes; only the ratios between steps matter.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), _TimeLeft())
    # There are few steps, so estimate the time left from all that are over.
    with Progress(*columns, console=console, transient=True, speed_estimate_period=3600) as progress:
        task = progress.add_task("", total=sum(map(expected_s, steps)))
        for number, step in enumerate(steps, start=1):
            progress.update(task, description=description(step))
            if not console.is_terminal:
                console.print(f"[{number}/{len(steps)}] {description(step)}", highlight=False, markup=False)
            yield step
            progress.advance(task, expected_s(step))
