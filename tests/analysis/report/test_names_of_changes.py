"""Two numbers have two names: the change, of ratios within blocks, and the change of the means, as in the paper."""

import re
import tomllib

import pytest

from base.places import PROJECT

OF_MEANS, WITHIN = "change of the means", "change"
TABLES = tomllib.loads((PROJECT / "analysis" / "report" / "tables.toml").read_text())


def heading(table: str, column: str) -> str:
    """The heading of a column in a table of the report."""
    entries = [entry for entry in TABLES[table]["columns"] if not isinstance(entry, str)]
    (name,) = [entry[1] for entry in entries if entry[0] == column]
    return str(name)


@pytest.mark.parametrize(
    ("table", "column", "name"),
    [
        ("mean_gains", "gain", OF_MEANS),
        ("comparisons", "gain", OF_MEANS),
        ("comparisons", "ratio_gain", WITHIN),
        ("loss_bounds", "gain", WITHIN),
        ("sensitivity", "gain", WITHIN),
        ("sensitivity", "paper_gain", OF_MEANS),
        ("confirmatory", "gain", WITHIN),
    ],
)
def test_a_column_is_named_by_which_change_it_has(table: str, column: str, name: str) -> None:
    assert heading(table, column) == name


def test_the_glossary_defines_both() -> None:
    text = (PROJECT / "docs" / "glossary.md").read_text()
    assert all(f"| **{change}** |" in text for change in (OF_MEANS, WITHIN))


def test_a_table_of_negative_changes_says_that_negative_is_faster() -> None:
    """It was headed "how much sooner", over numbers of which most are negative."""
    (head,) = re.findall(r"^\|(.*)\| against TCP\+ \|", (PROJECT / "docs" / "reference.md").read_text(), re.MULTILINE)
    assert "negative is faster" in head and "sooner" not in head
