"""One file adds a section of the report: a toy is added to a copy of the testbed, and followed to the report."""

from pathlib import Path

import pandas as pd
import pytest
from support.checkout import LIMIT_S, Checkout

from eyelevel.simulate import Truth, write

SECTION = '''
"""The longest loads of a campaign."""

from analysis.figures import order
from analysis.report.section import ReportFigure, Section
from analysis.report.sections.contract import CampaignSection
from analysis.report.tables import formed

FORM = {
    "title": "Longest loads",
    "columns": ["protocol", ["plt", "longest", "ms"]],
    "note": "Of {runs} runs.",
}


def sections(findings):
    runs = findings.campaign.valid
    if runs["plt"].max() < 1000:
        return []
    longest = runs.groupby("protocol", as_index=False)["plt"].max()
    slow = ReportFigure("toy_order", "The order of loads.", order.draw, (findings["residuals"], "plt", findings.canary))
    table = formed("toy_longest", FORM, longest, runs=len(runs))
    sentence = f"The longest took {runs['plt'].max():.0f} ms."
    return [Section("toy", "The longest loads", (sentence,), figures=(slow,), tables=(table,))]


SECTION = CampaignSection("toy", place=2, of=sections)
'''


@pytest.mark.slow
@pytest.mark.timeout(LIMIT_S)
def test_a_section_is_followed_to_the_report(tmp_path: Path) -> None:
    testbed = Checkout(tmp_path)
    (testbed.folder / "analysis" / "report" / "sections" / "toy.py").write_text(SECTION)
    write(testbed.results, Truth(2, ("lte",), ("tcp", "quic"), runs=3))
    testbed.report(testbed.results, "toy_order")
    report = testbed.results / "report"
    answer, page = ((report / name).read_text() for name in ("index.html", "everything.html"))
    runs = pd.read_csv(testbed.results / "runs.csv")
    sentence = f"The longest took {runs['plt'].max():.0f} ms."
    contents, section = page.split('<section id="toy">')
    assert sentence in answer and 'href="everything.html#toy"' in answer and sentence in section
    assert 'href="#toy">The longest loads</a>' in contents
    assert "Of 12 runs." in section and (report / "figures" / "toy_order.pdf").exists()
    longest = pd.read_csv(report / "tables" / "toy_longest.csv").set_index("protocol")["plt"]
    assert longest.to_dict() == runs.groupby("protocol")["plt"].max().to_dict()
