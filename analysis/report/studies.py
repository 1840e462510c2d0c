"""Which studies a report shows: each says of a campaign's folder what it has to say, or that there is nothing of it."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from analysis.report.section import Section
from analysis.studies import grid, packets, states
from eyelevel.files import read_json

# In the order of the page.
STUDIES: tuple[Callable[[Path], Section | None], ...] = (
    grid.section,
    states.section,
    packets.section,
)


def sections(folder: Path) -> list[Section]:
    """What the studies say of the campaign in `folder`. Raises EyelevelError when something in it is broken."""
    return [section for study in STUDIES if (section := study(folder)) is not None]


def documents(folder: Path, shown: Sequence[Section]) -> dict[str, dict[str, Any]]:
    """What studies that are no campaigns of their own were measured with: the title of each of those in `shown` → the
    settings, versions and machine that `<name>/<name>.json` tells. Raises EyelevelError when one is broken."""
    told = {}
    for section in shown:
        path = folder / section.name / f"{section.name}.json"
        if path.exists():
            told[section.title] = read_json(path)
    return told
