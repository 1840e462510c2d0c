"""A section that a study adds to a report."""

from dataclasses import dataclass

from analysis.report.plates import Plate
from analysis.report.views import View


@dataclass(frozen=True)
class Drawing:
    """A picture that is SVG from the start: the name of its file, its caption, and its text."""

    name: str
    caption: str
    svg: str


@dataclass(frozen=True)
class Section:
    """What a study says: paragraphs of plain text, figures, drawings and tables, in this order.

    `name` is the section's id on the page, and the `section` of its plates.
    """

    name: str
    title: str
    words: tuple[str, ...]
    plates: tuple[Plate, ...] = ()
    drawings: tuple[Drawing, ...] = ()
    views: tuple[View, ...] = ()
