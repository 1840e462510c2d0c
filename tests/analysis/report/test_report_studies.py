"""Studies in a report: as sections of a campaign's page, or as a page of their own."""

import json
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from click.testing import CliRunner
from matplotlib.figure import Figure
from support.figure_layout import write_white_figures

from analysis import hypotheses
from analysis.report.section import ANSWER, EVERYTHING, Drawing, ReportFigure, ReportTable, Section
from analysis.report.write import write_report
from eyelevel.commands import report
from eyelevel.sections import sections_of
from eyelevel.simulate import Truth, write

SVG = '<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"><title>drawn</title></svg>'
TABLE = pd.DataFrame({"what": ["<b>"], "how many": ["3"]})


def picture() -> Figure:
    figure = Figure(figsize=(1, 1))
    figure.subplots().plot([1, 2])
    return figure


SECTION = Section(
    "fake",
    "A study's title",
    ("First & foremost.", "Then."),
    (ReportFigure("fake_figure", "Its caption.", picture),),
    (Drawing("fake_drawing", "What is drawn.", SVG),),
    (ReportTable("fake_table", "Its table", TABLE, TABLE),),
)
FILES = {"figures/fake_figure.pdf", "figures/fake_figure.png", "figures/fake_drawing.svg"}
FILES |= {"tables/fake_table.csv", "tables/fake_table.tex", "index.html"}


@pytest.fixture(autouse=True)
def fake(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace all studies by one that has results for any folder."""
    monkeypatch.setattr("studies.STUDIES", [SimpleNamespace(name="fake", section=lambda folder: SECTION)])


def reported(folder: Path, *options: str) -> tuple[str, set[str]]:
    """The report's page, and the files next to it."""
    done = CliRunner().invoke(report.main, [str(folder), *options])
    assert done.exit_code == 0, done.output
    return contents_of(folder / "report")


def contents_of(into: Path, name: str = ANSWER) -> tuple[str, set[str]]:
    page = into / name
    return page.read_text() if page.exists() else "", {str(path.relative_to(into)) for path in into.rglob("*.*")}


def shows_the_study(page: str) -> bool:
    """Whether the page contains all of `SECTION`: texts as texts and the drawing as a drawing."""
    parts = ['<section id="fake"><h2>A study&#39;s title</h2>', "<p>First &amp; foremost.</p>", "<td>&lt;b&gt;</td>"]
    parts += ["<title>drawn</title>", 'alt="Its caption."', "figures/fake_drawing.svg", 'href="#fake"']
    return all(part in page for part in parts) and "<?xml" not in page


def unfilmed(folder: Path) -> Path:
    """A campaign without films, and thus without results of its own."""
    write(folder, Truth(sites=1, networks=("dsl",), protocols=("tcp+",), runs=1))
    document = json.loads((folder / "campaign.json").read_text())
    document["settings"]["filmed"] = False
    document["study"] = {"name": "fake"}
    document |= {"versions": {"chromium": "Chromium 1"}, "machine": {"host": "here"}}
    (folder / "campaign.json").write_text(json.dumps(document))
    return folder


def test_an_unfilmed_campaign_has_a_page_of_its_studies_with_versions_and_machine(tmp_path: Path) -> None:
    page, files = reported(unfilmed(tmp_path / "study"))
    assert shows_the_study(page)
    assert files > FILES
    assert "tables/comparisons.csv" not in files
    assert "<dt>chromium</dt><dd>Chromium 1</dd>" in page
    assert page.index('id="fake"') < page.index('id="measured"')


@pytest.mark.slow
def test_a_campaign_shows_its_studies_after_its_own_sections(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_white_figures(monkeypatch)
    truth = Truth(sites=2, networks=("dsl",), protocols=("tcp+", "quic"), runs=3, effects={})
    folder = write(tmp_path / "campaign", truth)
    assert sections_of(folder) == [], "it is of no study"
    into = write_report(folder, [SECTION], hypotheses.load())
    page, files = contents_of(into, EVERYTHING)
    assert shows_the_study(page)
    assert "First &amp; foremost." in (into / ANSWER).read_text()
    assert page.index('id="exclusions"') < page.index('id="fake"') < page.index('id="methods"')
    assert files > FILES - {"figures/fake_figure.pdf"}
    assert {"tables/comparisons.csv", "figures/figure3.png"} < files


def test_figures_alone_are_those_of_studies_too(tmp_path: Path) -> None:
    page, files = reported(unfilmed(tmp_path / "study"), "--figures-only")
    assert (page, files) == ("", {name for name in FILES if name.startswith("figures/")})
