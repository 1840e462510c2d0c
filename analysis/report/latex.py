"""A table of the report for a paper, with the LaTeX packages booktabs and longtable."""

from analysis.report.section import ReportTable

# A table of more rows goes over several pages.
PAGE_ROWS = 45


def latex(table: ReportTable) -> str:
    """The texts of `table` as LaTeX. Columns of numbers are aligned right."""
    if table.texts.empty:
        return f"% {table.title}: nothing\n"
    numeric = [column.str.match(r"^[-+]?(\d|$)").all() for _, column in table.texts.astype(str).items()]
    long = len(table.texts) > PAGE_ROWS
    styler = table.texts.style.hide(axis="index").format(escape="latex").format_index(escape="latex", axis="columns")
    text = styler.to_latex(
        hrules=True,
        environment="longtable" if long else None,
        column_format="".join("r" if is_numeric else "l" for is_numeric in numeric),
        label=f"tab:{table.name}" if long else None,
        caption=f"{table.title}." if long else None,
    )
    return f"% {table.title}. {table.note}\n{text}"
