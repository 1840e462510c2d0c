"""A table of the report for a paper, with the LaTeX packages array, booktabs, longtable and pdflscape.

A whole table is for a document of one column: it spans several pages if it is long, and is rotated if it is wide. The
tables on the declared hypotheses also have a `table*`, with only those hypotheses and the columns that a paper needs.
It fits `article`, `acmart` (sigconf) and `IEEEtran`, and needs only booktabs.
"""

import re
from collections.abc import Iterable, Sequence
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
    "confirmatory": ("network", "metric", "sites", "blocks", "gain", "{confidence} interval", "corrected p", "verdict"),
    "mean_gains": ("network", "metric", "gain of the means", "mean difference", "faster", "slower", "no difference"),
    "over_sites": (
        *("network", "metric", "mean gain", "its {confidence} interval", "gain within blocks"),
        "{confidence} interval",
    ),
    "sensitivity": ("network", "metric", "gain", "gain of the means", "median site", "without one site"),
    "heterogeneity": (
        *("network", "metric", "sites", "between sites", "I squared"),
        "{confidence} interval of a further site",
    ),
    "loss_bounds": ("network", "metric", "lost, against", "lost", "gain", "bounds"),
    "blocks_needed": ("network", "metric", "error of one block", "1 %", "2 %", "5 %", "10 %", "20 %"),
}
# Columns for which a table has no room; its CSV has them.
LEFT_OUT = {"beside_the_paper": ["remark", "unit"]}
# Matches a cell of a column of numbers, or an empty cell.
NUMBER = r"^[-+]?(\d|$)"
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
    texts = table.texts.astype(str).drop(columns=LEFT_OUT.get(table.name, []), errors="ignore")
    remark = f"% {table.title}. {table.note}".replace("\n", " ").rstrip()
    if texts.empty:
        return f"% {table.title}: nothing\n"
    widths = {wrapped: _width(texts, wrapped) for wrapped in WRAPPED}
    wrapped = next((wrapped for wrapped, width in widths.items() if width <= SMALLEST_ACROSS), WRAPPED[-1])
    width = widths[wrapped]
    is_long, is_across = len(texts) > PAGE_ROWS, width > SMALLER_LINE
    size = r"\small" if width <= LINE else r"\scriptsize" if width > ACROSS_LINE else r"\footnotesize"
    environment = "longtable" if is_long else "tabular"
    opening, ending = [rf"\begin{{{environment}}}{{{_alignment(texts, wrapped)}}}"], [rf"\end{{{environment}}}"]
    head = [r"\toprule", _line(_headings(texts)), r"\midrule"]
    if is_long:
        opening += [rf"\caption{{{escaped(table.title)}.}}\label{{tab:{table.name}}}\\"]
        head += [r"\endhead", r"\bottomrule", r"\endfoot"]
    else:
        ending.insert(0, r"\bottomrule")
    if is_across:
        opening.insert(0, r"\begin{landscape}")
        ending.append(r"\end{landscape}")
    begin = ["{" + size, r"\setlength{\tabcolsep}{3pt}"]
    return "\n".join([remark, *begin, *opening, *head, *_rows(texts), *ending, "}", ""])


def family_latex(table: ReportTable, declared: Hypotheses) -> str | None:
    """The `table*` of `table` with the pairs and metrics that are `declared`; None if the table is not about them."""
    headings = [name.format(confidence=level(declared.confidence)) for name in FAMILY_COLUMNS.get(table.name, ())]
    columns = [name for name in headings if name in table.texts]
    if not columns or not {"protocol", "against"} <= {*table.texts} or "metric" not in table.texts:
        return None
    is_declared = _among(table.texts, declared)
    texts = table.texts.astype(str)[is_declared]
    if texts.empty:
        return None
    pairs = [" / ".join(names) for names in zip(texts["protocol"], texts["against"], strict=True)]
    texts = texts[columns].assign(metric=[metric.partition(" [")[0] for metric in texts["metric"]])
    caption = table.title
    if len({*pairs}) > 1:
        texts.insert(0, "pair", pairs)
    else:
        caption += f": {pairs[0].replace(' / ', ' against ')}"
    lines = [
        f"% {table.title}. {table.note}".replace("\n", " ").rstrip(),
        r"\begin{table*}",
        rf"\caption{{{escaped(caption)}}}\label{{tab:{table.name}-family}}",
        r"\centering\footnotesize\setlength{\tabcolsep}{3pt}",
        rf"\begin{{tabular}}{{{_alignment(texts)}}}",
        *[r"\toprule", _line(_headings(texts)), r"\midrule", *_rows(texts), r"\bottomrule"],
        *[r"\end{tabular}", r"\end{table*}", ""],
    ]
    return "\n".join(lines)


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


def _width(texts: pd.DataFrame, wrapped: int) -> int:
    """The width of a table in characters, with 2 for the space between columns."""
    cells = [_cell_width(column, wrapped) for _, column in texts.items()]
    headings = [max(map(len, _lines_of_heading(column, str(name)))) for name, column in texts.items()]
    return sum(max(pair) + 2 for pair in zip(cells, headings, strict=True))


def _cell_width(column: "pd.Series[str]", wrapped: int) -> int:
    """The number of characters in a line of a column; no word is broken."""
    cells = set(column)
    longest_word = max(len(word) for text in cells for word in [*re.split(r"[ _]", text), ""])
    return min(_longest(cells), max(wrapped, longest_word + 1))


def _longest(cells: Iterable[str]) -> int:
    return max(map(len, cells))


def _lines_of_heading(column: "pd.Series[str]", name: str) -> list[str]:
    """The heading of a column, in as many lines as needed to be no wider than the cells below it."""
    return wrap(name, max(_longest(column), *map(len, name.split()))) or [name]


def _headings(texts: pd.DataFrame) -> list[str]:
    headings = []
    for name, column in texts.items():
        lines = r"\\".join(map(escaped, _lines_of_heading(column, str(name))))
        headings.append(rf"\shortstack[l]{{{lines}}}" if r"\\" in lines else lines)
    return headings


def _alignment(texts: pd.DataFrame, wrapped: int = WRAPPED[0]) -> str:
    letters = []
    for _, column in texts.items():
        width = _cell_width(column, wrapped)
        if _longest(column) > width:
            letters.append(rf">{{\raggedright\arraybackslash}}p{{{CHARACTER_EM * width:.3g}em}}")
        else:
            letters.append("r" if column.str.match(NUMBER).all() else "l")
    return "@{}" + "".join(letters) + "@{}"


def _rows(texts: pd.DataFrame) -> list[str]:
    return [_line(map(escaped, row)) for row in texts.itertuples(index=False)]


def _line(cells: Iterable[str]) -> str:
    return " & ".join(cells) + r" \\"
