"""A table of the report for a paper, with the LaTeX packages booktabs and longtable."""

from analysis.report.views import View

# A table of more rows goes over several pages.
PAGE_ROWS = 45


def latex(view: View) -> str:
    """The table that is shown, as LaTeX. Cells that begin with a digit or a sign stand right."""
    if view.shown.empty:
        return f"% {view.title}: nothing\n"
    numbers = [column.str.match(r"^[-+]?(\d|$)").all() for _, column in view.shown.astype(str).items()]
    long = len(view.shown) > PAGE_ROWS
    styler = view.shown.style.hide(axis="index").format(escape="latex").format_index(escape="latex", axis="columns")
    text = styler.to_latex(
        hrules=True,
        environment="longtable" if long else None,
        column_format="".join("r" if number else "l" for number in numbers),
        label=f"tab:{view.name}" if long else None,
        caption=f"{view.title}." if long else None,
    )
    return f"% {view.title}. {view.note}\n{text}"
