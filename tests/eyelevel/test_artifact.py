"""Claim C1 of docs/artifact.md: the published report follows from the published data."""

import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from PIL import Image
from support.figure_layout import write_white_figures

from analysis.report.section import ANSWER, EVERYTHING, PAPER
from base.places import PROJECT
from eyelevel.commands.report import main as report

REFERENCE = PROJECT / "data" / "reference"


def text_of(page: Path) -> list[str]:
    """The lines of a page without its markup, styles and pictures."""
    return re.sub(r"(?s)<(style|script)\b.*?</\1>|<[^>]*>", "\n", page.read_text()).split("\n")


def files_of(folder: Path) -> dict[str, tuple[int, int] | None]:
    """The files in `folder`; those that are pictures have a size."""
    paths = [path for path in folder.rglob("*") if path.is_file()]
    return {
        str(path.relative_to(folder)): Image.open(path).size if path.suffix == ".png" else None
        for path in sorted(paths)
    }


@pytest.mark.slow
def test_the_published_report_says_what_a_new_one_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_white_figures(monkeypatch, laid_out=False)  # no positions are compared here
    result = CliRunner().invoke(report, [str(REFERENCE), "--into", str(tmp_path / "new")])
    assert result.exit_code == 0, result.output
    answer, *others = re.findall("^On average, .*", result.output, re.MULTILINE)
    assert answer == (
        "On average, QUIC shows these 10 to 11 pages sooner than TCP+ on LTE and MSS; not decided on DSL and DA2GC."
    )
    assert len(others) == 2
    for page in (ANSWER, PAPER, EVERYTHING):
        assert text_of(tmp_path / "new" / page) == text_of(REFERENCE / "report" / page), "write data/reference anew"
    assert files_of(tmp_path / "new") == files_of(REFERENCE / "report")
