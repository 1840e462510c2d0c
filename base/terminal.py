"""Printing to a terminal or a pipe, also of untrusted texts."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from base.text import printable_lines

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console, ConsoleOptions, RenderableType
    from rich.segment import Segment
    from rich.table import Table


# In a file or a pipe, lines may have any length, so no cell of a table is wrapped.
WIDE = 1000


def terminal() -> Console:
    """The standard output, to which untrusted texts can be printed: markup is printed literally, and control characters
    are escaped, also in tables. It is WIDE where it is not a terminal, unless COLUMNS says otherwise."""
    from rich.console import Console

    class Terminal(Console):
        def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
            for segment in super().render(renderable, options):
                yield segment if segment.control else segment._replace(text=printable_lines(segment.text))

    console = Terminal(highlight=False, markup=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = WIDE
    return console


def plain_table(**options: Any) -> Table:
    """A table without lines between its cells; `options` are rich's."""
    from rich import box
    from rich.table import Table

    return Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, title_justify="left", **options)


def fits(console: Console, table: Table) -> bool:
    """Whether `console` has room for `table` without wrapping a cell."""
    return console.measure(table, options=console.options.update(width=WIDE)).maximum <= console.width


def print_json(document: Any) -> None:
    """Print `document` as JSON, for other programs."""
    print(json.dumps(document, indent=1))


def print_line(console: Console, text: str) -> None:
    """Print `text` literally: brackets are not markup, and the terminal wraps long lines."""
    console.print(text, markup=False, soft_wrap=True)
