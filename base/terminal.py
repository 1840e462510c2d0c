"""Printing to a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def print_line(console: Console, text: str) -> None:
    """Print `text` as it is: brackets in it are no markup, and a long line is the terminal's to wrap."""
    console.print(text, markup=False, soft_wrap=True)
