"""The tables of a campaign's report: each with all its digits for CSV, and formatted for the page and LaTeX."""

import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from analysis import text
from analysis.findings import Findings
from analysis.report.section import ReportTable, text_table
from analysis.statistics.outcomes import SIGNIFICANT_P
from analysis.text import NOTHING, level

# The forms of most tables, by the names of their files.
FORMS: dict[str, Any] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text())


def declared_values(findings: Findings) -> dict[str, object]:
    """Values of the declared hypotheses, for the headings and notes of tables."""
    declared = findings.declared
    tests = level(round(1 - declared.significant_p, 6))
    return {"confidence": level(declared.confidence), "test_confidence": tests, "significant_p": declared.significant_p}


def tables_of(findings: Findings, *names: str) -> tuple[ReportTable, ...]:
    """The tables of these names in `tables.toml`, each with the data of its analysis, without those that are empty."""
    by_name = {name: findings[FORMS[name]["analysis"]] for name in names}
    return tuple(report_table(name, data, **declared_values(findings)) for name, data in by_name.items() if len(data))


def report_table(name: str, data: pd.DataFrame, **values: object) -> ReportTable:
    """The table `name` of `tables.toml` with `data`; `values` go into its headings and its note."""
    return formed(name, FORMS[name], data, paper_p=SIGNIFICANT_P, **values)


def formed(name: str, form: Mapping[str, Any], data: pd.DataFrame, **values: object) -> ReportTable:
    """The table `name` in a given form: title, columns and note, as in an entry of `tables.toml`."""
    rows = data.astype(object).where(data.notna(), NOTHING) if form.get("has_gaps") else data
    texts = text_table(rows, dict(_column(column, values) for column in form.get("columns", data)))
    return ReportTable(name, form["title"], data, texts, form.get("note", "").format(**values))


def _column(
    entry: str | list[Any], values: Mapping[str, object]
) -> tuple[str | tuple[str, ...], tuple[str, Callable[..., str]]]:
    """A column of `tables.toml` in the format of `text_table`; `values` replace the placeholders in its heading."""
    if isinstance(entry, str):
        entry = [entry, *FORMS["columns"].get(entry, [entry.replace("_", " ")])]
    names, heading, writer = entry if len(entry) == 3 else [*entry, "{}"]
    write = writer.format if "{" in writer else getattr(text, writer)
    return (tuple(names) if isinstance(names, list) else names), (heading.format(**values), write)
