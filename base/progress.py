"""Steps that take long, one after another: a person sees which one it is, and how much time is left."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

T = TypeVar("T")


def each_shown(
    steps: Sequence[T], description: Callable[[T], str], expected_s: Callable[[T], float], console: Console
) -> Iterator[T]:
    """Each of `steps`, shown on `console` while it is being made; a line for each where that is no terminal.

    `expected_s` is how long a step takes; only its relation to other steps matters.
    """
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("time left"), TimeRemainingColumn())
    # Steps are seldom: the time left comes from all that are over.
    with Progress(*columns, console=console, transient=True, speed_estimate_period=3600) as progress:
        task = progress.add_task("", total=sum(map(expected_s, steps)))
        for number, step in enumerate(steps, start=1):
            progress.update(task, description=description(step))
            if not console.is_terminal:
                console.print(f"[{number}/{len(steps)}] {description(step)}", highlight=False, markup=False)
            yield step
            progress.advance(task, expected_s(step))
