"""Which studies a report shows: each says of a campaign's folder what it has to say, or that there is nothing of it."""

from collections.abc import Callable
from pathlib import Path

from analysis.report.section import Section
from analysis.studies import grid, packets, states

# In the order of the page.
STUDIES: tuple[Callable[[Path], Section | None], ...] = (
    grid.section,
    states.section,
    packets.section,
)


def sections(folder: Path) -> list[Section]:
    """What the studies say of the campaign in `folder`. Raises EyelevelError when something in it is broken."""
    return [section for study in STUDIES if (section := study(folder)) is not None]
