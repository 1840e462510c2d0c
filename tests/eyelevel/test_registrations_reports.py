"""A section of the report and an importer are a file each: toys are added to a copy of the testbed, in a temporary
folder, and followed to the report."""

import json
from pathlib import Path

import pandas as pd
import pytest
from support.checkout import LIMIT_S, Checkout

from analysis.simulate import Truth, write

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

FORMAT = '''
"""Pages as JSON: URL → HTML."""

import json

from base.bounded import read_regular
from record.assemble import assemble
from record.http1 import Response
from record.intake import Intake
from record.layout import authority_of
from record.limits import BODY_BYTES
from record.site import Exchange

NAME = "toy"
DESCRIPTION = "pages as JSON (.toy)"
ENDINGS = (".toy",)


def recognises(path):
    return path.is_file() and path.suffix == ".toy"


def read(path, *, keep_cookies=False):
    intake = Intake(path.name, keep_cookies=keep_cookies)
    for url, text in json.loads(read_regular(path, BODY_BYTES)).items():
        body = text.encode()
        headers = (("content-type", "text/html"), ("content-length", str(len(body))))
        intake.take(url, lambda: Exchange("GET", url, Response(200, "OK", headers, body), authority_of(url)))
    return assemble(intake, {"tool": "toys", "server_ips": "not recorded; one for each host"})
'''
PAGES = {
    "https://toys.test/": '<!doctype html><p>toys</p><iframe src="https://other.test/"></iframe>',
    "https://other.test/": "<!doctype html><p>more</p>",
}


@pytest.mark.slow
@pytest.mark.timeout(LIMIT_S)
def test_a_section_is_followed_to_the_report(tmp_path: Path) -> None:
    testbed = Checkout(tmp_path)
    (testbed.folder / "analysis" / "report" / "sections" / "toy.py").write_text(SECTION)
    write(testbed.results, Truth(2, ("lte",), ("tcp", "quic"), runs=3))
    reported = testbed.eyelevel("report", testbed.results)
    assert reported.returncode == 0, reported.stderr
    report = testbed.results / "report"
    page = (report / "index.html").read_text()
    runs = pd.read_csv(testbed.results / "runs.csv")
    sentence = f"The longest took {runs['plt'].max():.0f} ms."
    summary, section = page.split('<section id="toy">')
    assert sentence in summary and sentence in section
    assert 'href="#toy">The longest loads</a>' in summary
    assert "Of 12 runs." in section and (report / "figures" / "toy_order.pdf").exists()
    longest = pd.read_csv(report / "tables" / "toy_longest.csv").set_index("protocol")["plt"]
    assert longest.to_dict() == runs.groupby("protocol")["plt"].max().to_dict()


@pytest.mark.timeout(LIMIT_S)
@pytest.mark.needs_namespaces
@pytest.mark.needs_browser
@pytest.mark.loads
def test_an_importer_is_followed_to_the_report(tmp_path: Path) -> None:
    testbed = Checkout(tmp_path)
    (testbed.folder / "record" / "formats" / "toy.py").write_text(FORMAT)
    assert "pages as JSON (.toy)" in " ".join(testbed.eyelevel("import", "--help").stdout.split())
    recording = tmp_path / "toys.toy"
    recording.write_text(json.dumps(PAGES))
    imported = testbed.eyelevel("import", recording)
    assert imported.returncode == 0, imported.stderr
    campaign = testbed.measure("--sites", "toys", "--net", "dsl", "--proto", "tcp")
    runs = pd.read_csv(campaign / "runs.csv")
    run = runs[runs["valid"]].iloc[0]
    assert (run["site"], run["served"], run["missed"]) == ("toys", 2, 0)
    assert "toys" in (campaign / "report" / "index.html").read_text()
