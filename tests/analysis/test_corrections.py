"""The page on corrections has every module that corrects for the number of its tests."""

import re

import pytest

from analysis import hypotheses
from analysis.paper.claims import TESTABLE
from base.places import PROJECT

TEXT = (PROJECT / "docs" / "corrections.md").read_text()
CORRECTS = re.compile(r"\bholm\w*\(|\bholm\b,|\bfalse_discovery_rate\b|Bonferroni", re.IGNORECASE)
# Modules that only compute a correction or a part of one, or that say in sentences what others have corrected.
OF_OTHERS = re.compile(r"contrast_table|stopping|spending|heterogeneity|report/|section|answer|planning|ratios")
MODULES = sorted(
    str(path.relative_to(PROJECT))
    for folder in ("analysis", "measure", "studies")
    for path in (PROJECT / folder).rglob("*.py")
    if CORRECTS.search(path.read_text())
)


@pytest.mark.parametrize("module", [name for name in MODULES if not OF_OTHERS.search(name)])
def test_the_page_has_each_module_that_corrects(module: str) -> None:
    assert f"`{module}`" in TEXT


def test_the_page_has_no_module_that_does_not() -> None:
    assert set(re.findall(r"`((?:analysis|measure|studies)/[\w/]+\.py)`", TEXT)) <= set(MODULES)


def test_the_page_has_the_numbers_of_the_code() -> None:
    assert f"all {len(TESTABLE)}, whether" in TEXT
    assert hypotheses.load().significant_p == 0.01
