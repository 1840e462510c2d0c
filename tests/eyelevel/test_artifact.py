"""Claim C1 of docs/artifact.md: the published report follows from the published data."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from analysis.report.section import ANSWER, EVERYTHING, PAPER
from base.places import PROJECT
from eyelevel.commands.report import main as report

REFERENCE = PROJECT / "data" / "reference"


def text_of(page: Path) -> list[str]:
    """The lines of a page without its markup, styles and pictures."""
    return re.sub(r"(?s)<(style|script)\b.*?</\1>|<[^>]*>", "\n", page.read_text()).split("\n")


@pytest.mark.slow
def test_the_published_report_says_what_a_new_one_says(tmp_path: Path) -> None:
    result = CliRunner().invoke(report, [str(REFERENCE), "--into", str(tmp_path / "new")])
    assert result.exit_code == 0, result.output
    for page in (ANSWER, PAPER, EVERYTHING):
        assert text_of(tmp_path / "new" / page) == text_of(REFERENCE / "report" / page), "write data/reference anew"
    published, new = (
        sorted(path.name for path in folder.rglob("*")) for folder in (REFERENCE / "report", tmp_path / "new")
    )
    assert new == published
