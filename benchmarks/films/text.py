"""Tables for the terminal."""

from collections.abc import Sequence


def table(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A text with `titles` and, below them, `rows`, aligned in columns."""
    widths = [max(len(row[place]) for row in (titles, *rows)) for place in range(len(titles))]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in (titles, *rows)
    )
