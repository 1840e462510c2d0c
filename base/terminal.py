"""Printing to a terminal, also of untrusted texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from base.text import printable_lines

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment


def terminal() -> Console:
    """A terminal to which untrusted texts can be printed: markup is printed literally, and control characters are
    escaped, also in tables."""
    from rich.console import Console

    class Terminal(Console):
        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                yield segment if segment.control else segment._replace(text=printable_lines(segment.text))

    return Terminal(highlight=False, markup=False)


def print_line(console: Console, text: str) -> None:
    """Print `text` literally: brackets are not markup, and the terminal wraps long lines."""
    console.print(text, markup=False, soft_wrap=True)
