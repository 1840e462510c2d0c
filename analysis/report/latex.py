"""A table of the report for a paper, with the LaTeX packages array, booktabs, longtable and pdflscape.

A whole table is for a document of one column: it spans several pages if it is long, and is rotated if it is wide. The
tables on the declared hypotheses also have a `table*`, with only those hypotheses and the columns that a paper needs.
It fits `article`, `acmart` (sigconf) and `IEEEtran`, and needs only booktabs.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from textwrap import wrap

import pandas as pd

from analysis.report.section import ReportTable
from analysis.statistics.hypotheses import Hypotheses
from analysis.text import label, level

# A table with more rows spans several pages.
PAGE_ROWS = 45
# The number of characters in a line: upright in normal and in smaller type, rotated in small and in the smallest type.
# A wider table is set smaller, rotated, or both.
LINE, SMALLER_LINE, ACROSS_LINE, SMALLEST_ACROSS = 68, 78, 122, 138
# Texts longer than the first number of characters wrap; if the table is still too wide, texts longer than the next
# number do, too. A character is CHARACTER_EM em wide.
WRAPPED, CHARACTER_EM = (30, 20, 12, 8), 0.5
# The columns of each table's `table*`, by their headings in `tables.toml`.
FAMILY_COLUMNS: dict[str, Sequence[str]] = {
    "confirmatory": (
        "network",
        "metric",
        "sites",
        "blocks",
        "change",
        "{confidence} interval",
        "corrected p",
        "verdict",
    ),
    "mean_gains": ("network", "metric", "change of the means", "mean difference", "faster", "slower", "no difference"),
    "over_sites": (
        *("network", "metric", "mean change", "its {confidence} interval", "change within blocks"),
        "{confidence} interval",
    ),
    "sensitivity": ("network", "metric", "change", "change of the means", "median site", "without one site"),
    "heterogeneity": (
        *("network", "metric", "sites", "between sites", "I squared"),
        "{confidence} interval of a further site",
    ),
    "loss_bounds": ("network", "metric", "lost, against", "lost", "change", "bounds"),
    "blocks_needed": ("network", "metric", "error of one block", "1 %", "2 %", "5 %", "10 %", "20 %"),
}
# Columns for which a table has no room; its CSV has them.
LEFT_OUT = {"beside_the_paper": ["remark", "unit"]}
# Matches a cell of a column of numbers, or an empty cell.
NUMBER = re.compile(r"[-+]?(\d|$)")
SPECIAL = str.maketrans(
    {
        **{character: rf"\{character}" for character in "&%$#{}"},
        "_": r"\_\allowbreak{}",
        "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}",
        ">": r"\textgreater{}", "“": "``", "”": "''", "\N{MINUS SIGN}": "$-$", "±": r"$\pm$", "≥": r"$\geq$",
        "≤": r"$\leq$", "→": r"$\to$", "\N{NO-BREAK SPACE}": "~", "[": "{[}",
    }
)  # fmt: skip


def latex(table: ReportTable) -> str:
    """The texts of `table` as LaTeX for a document of one column. Columns of numbers are aligned right."""
    remark = f"% {table.title}. {table.note}".replace("\n", " ").rstrip()
    columns = _columns(table.texts.drop(columns=LEFT_OUT.get(table.name, []), errors="ignore"))
    for wrapped in WRAPPED:
        width = sum(column.width(wrapped) for column in columns)
        if width <= SMALLEST_ACROSS:
            break
    is_long, is_across = len(table.texts) > PAGE_ROWS, width > SMALLER_LINE
    size = r"\small" if width <= LINE else r"\scriptsize" if width > ACROSS_LINE else r"\footnotesize"
    environment = "longtable" if is_long else "tabular"
    opening, ending = [rf"\begin{{{environment}}}{{{_alignment(columns, wrapped)}}}"], [rf"\end{{{environment}}}"]
    head = [r"\toprule", _headings(columns), r"\midrule"]
    if is_long:
        opening += [rf"\caption{{{escaped(table.title)}.}}\label{{tab:{table.name}}}\\"]
        head += [r"\endhead", r"\bottomrule", r"\endfoot"]
    else:
        ending.insert(0, r"\bottomrule")
    if is_across:
        opening.insert(0, r"\begin{landscape}")
        ending.append(r"\end{landscape}")
    begin = ["{" + size, r"\setlength{\tabcolsep}{3pt}"]
    return "\n".join([remark, *begin, *opening, *head, *_rows(columns), *ending, "}", ""])


def family_latex(table: ReportTable, declared: Hypotheses) -> str | None:
    """The `table*` of `table` with the pairs and metrics that are `declared`; None if the table is not about them."""
    headings = [name.format(confidence=level(declared.confidence)) for name in FAMILY_COLUMNS.get(table.name, ())]
    names = [name for name in headings if name in table.texts]
    if not names or not {"protocol", "against"} <= {*table.texts} or "metric" not in table.texts:
        return None
    is_declared = _among(table.texts, declared)
    texts = table.texts[is_declared]
    if texts.empty:
        return None
    pairs = [" / ".join(pair) for pair in zip(texts["protocol"], texts["against"], strict=True)]
    texts = texts[names].assign(metric=[metric.partition(" [")[0] for metric in texts["metric"]])
    caption = table.title
    if len({*pairs}) > 1:
        texts.insert(0, "pair", pairs)
    else:
        caption += f": {pairs[0].replace(' / ', ' against ')}"
    columns = _columns(texts)
    lines = [
        f"% {table.title}. {table.note}".replace("\n", " ").rstrip(),
        r"\begin{table*}",
        rf"\caption{{{escaped(caption)}}}\label{{tab:{table.name}-family}}",
        r"\centering\footnotesize\setlength{\tabcolsep}{3pt}",
        rf"\begin{{tabular}}{{{_alignment(columns)}}}",
        *[r"\toprule", _headings(columns), r"\midrule", *_rows(columns), r"\bottomrule"],
        *[r"\end{tabular}", r"\end{table*}", ""],
    ]
    return "\n".join(lines)


@lru_cache(10_000)  # most cells of long tables are names
def escaped(text: str) -> str:
    """`text` escaped for LaTeX; the hyphen before a negative number becomes a minus sign."""
    plain = text.translate(SPECIAL).replace("\n", " ")
    return re.sub(r"(?<![\w.)}-])-(?=[\d.])", "$-$", plain)


def _among(texts: pd.DataFrame, declared: Hypotheses) -> "pd.Series[bool]":
    pairs = {(label(pair.compared), label(pair.reference)) for pair in declared.family}
    metrics = {label(metric) for metric in declared.family_metrics}
    names = zip(texts["protocol"], texts["against"], texts["metric"], strict=True)
    rows = [(*pair, metric.partition(" [")[0]) for *pair, metric in names]
    return pd.Series([(*pair,) in pairs and metric in metrics for *pair, metric in rows], texts.index, dtype=bool)


@dataclass(frozen=True)
class _Column:
    """A column of a table. Its cells are a list, since pandas takes ten times as long to go through its own texts."""

    name: str
    cells: Sequence[str]

    def width(self, wrapped: int) -> int:
        """The width in characters, with 2 for the space between columns."""
        return max(self.cell_width(wrapped), *map(len, self.heading)) + 2

    def cell_width(self, wrapped: int) -> int:
        """The number of characters in a line of a cell; no word is broken."""
        return min(self.longest, max(wrapped, self.longest_word + 1))

    @cached_property
    def longest(self) -> int:
        """The length of the longest cell."""
        return max(map(len, self.cells))

    @cached_property
    def longest_word(self) -> int:
        return max(len(word) for text in {*self.cells} for word in re.split(r"[ _]", text))

    @cached_property
    def heading(self) -> list[str]:
        """The heading, in as many lines as needed to be no wider than the cells below it."""
        return wrap(self.name, max(self.longest, *map(len, self.name.split()))) or [self.name]


def _columns(texts: pd.DataFrame) -> list[_Column]:
    return [_Column(str(name), list(map(str, column.tolist()))) for name, column in texts.items()]


def _headings(columns: Sequence[_Column]) -> str:
    headings = []
    for column in columns:
        lines = r"\\".join(map(escaped, column.heading))
        headings.append(rf"\shortstack[l]{{{lines}}}" if r"\\" in lines else lines)
    return _line(headings)


def _alignment(columns: Sequence[_Column], wrapped: int = WRAPPED[0]) -> str:
    letters = []
    for column in columns:
        width = column.cell_width(wrapped)
        if column.longest > width:
            letters.append(rf">{{\raggedright\arraybackslash}}p{{{CHARACTER_EM * width:.3g}em}}")
        else:
            letters.append("r" if all(map(NUMBER.match, column.cells)) else "l")
    return "@{}" + "".join(letters) + "@{}"


def _rows(columns: Sequence[_Column]) -> list[str]:
    return [_line(map(escaped, row)) for row in zip(*(column.cells for column in columns), strict=True)]


def _line(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"
