"""The parts of a report: tables, figures, drawings, and sections."""

import base64
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pandas as pd
from matplotlib.figure import Figure

from analysis.figures import style
from analysis.text import label

# The characters that a URL with data in double quotes may contain as they are.
SAFE = " !$&'()*+,-./:;=?@[]_~"
# The files of a report's pages.
ANSWER, PAPER, EVERYTHING = "index.html", "paper.html", "everything.html"


@dataclass(frozen=True)
class ReportTable:
    """A table. `data`, with all digits, is written to `name`.csv; `texts`, formatted for readers, to the page and to
    `name`.tex."""

    name: str
    title: str
    data: pd.DataFrame
    texts: pd.DataFrame
    note: str = ""


@dataclass(frozen=True)
class ReportFigure:
    """A figure: the name of its files, its caption, and the function that draws it from `arguments`.

    `finding`: the figure's result in words, as its text alternative; without it, the caption is the alternative.
    `of_pictures`: whether it consists of pictures, so that a page shows it as PNG, not as SVG.
    `run_files`: for a figure of certain runs, the description of each of their files → its path; the page links to
    those that exist.
    """

    name: str
    caption: str
    draw: Callable[..., Figure]
    arguments: tuple[Any, ...] = ()
    finding: str = ""
    run_files: Mapping[str, Path] = field(default_factory=dict)
    of_pictures: bool = False

    @property
    def alt(self) -> str:
        """The picture's text alternative."""
        return self.finding or self.caption

    def write(self, folder: Path) -> str:
        """Draw the figure as PDF and PNG into `folder`; return it as a URL with its data, for a page."""
        figure = self.draw(*self.arguments)
        if self.of_pictures:
            style.save(figure, folder, self.name)
            return data_url("image/png", (folder / f"{self.name}.png").read_bytes())
        return svg_url(style.save(figure, folder, self.name))


def data_url(kind: str, data: bytes) -> str:
    """A URL with its `data`, which are of this kind (a MIME type)."""
    return f"data:{kind};base64,{base64.b64encode(data).decode()}"


def svg_url(svg: str) -> str:
    """A URL with an SVG, in which only those characters are escaped that must be: a third shorter than in base 64."""
    return f"data:image/svg+xml,{quote(svg.replace(chr(34), chr(39)), safe=SAFE)}"


@dataclass(frozen=True)
class Drawing:
    """A picture that is made as SVG: the name of its file, its caption, and its SVG text."""

    name: str
    caption: str
    svg: str


@dataclass(frozen=True)
class Section:
    """A section of a report: paragraphs of plain text, figures, drawings and tables, in this order on the page.

    `name` is the section's id on its page, which is the file `page` of the report. The first paragraph is also part of
    the answer's page. Figures after the first `unfolded_figures` are folded, and so are tables of more than
    `unfolded_rows` rows. If the template `sections/<name>.html.j2` exists, the page uses this template for the section.
    The template has its own heading, shows the sections inside this one (`parts`), and may use further `values`.
    """

    name: str
    title: str
    paragraphs: tuple[str, ...] = ()
    figures: tuple[ReportFigure, ...] = ()
    drawings: tuple[Drawing, ...] = ()
    tables: tuple[ReportTable, ...] = ()
    page: str = EVERYTHING
    unfolded_figures: int = 99
    unfolded_rows: int = 40
    parts: tuple["Section", ...] = ()
    values: Mapping[str, Any] = field(default_factory=dict)

    @property
    def has_content(self) -> bool:
        """Whether the page has anything to show in this section."""
        inside = [len(table.texts) for table in self.tables] + [part.has_content for part in self.parts]
        return any((self.paragraphs, self.figures, self.drawings, *self.values.values(), *inside))


def with_parts(sections: Iterable[Section]) -> list[Section]:
    """`sections`, each followed by the sections inside it."""
    return [one for section in sections for one in (section, *section.parts)]


# Columns that many tables have, for `text_table`.
SITE_SETTING: dict[Any, Any] = {"site": "site", "network": ("network", label), "protocol": ("protocol", label)}


def text_table(data: pd.DataFrame, columns: Mapping[Any, Any]) -> pd.DataFrame:
    """The texts of `data`. `columns`: column → its heading, or its heading and the function that formats a value.

    A tuple of column names has one function, which formats the values of a row together.
    """
    texts = {}
    for column, entry in columns.items():
        heading, form = entry if isinstance(entry, tuple) else (entry, str)
        values = [data[name] for name in (column if isinstance(column, tuple) else (column,))]
        texts[heading] = [form(*row) for row in zip(*values, strict=True)]
    return pd.DataFrame(texts)
