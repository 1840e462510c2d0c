"""`eyelevel status` shows the state of a campaign on one screen: first when it will be done, then problems."""

import re
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from factories import ROW, rejected

from base.structure import structured
from dataset.plan import write_plan
from dataset.settings import CampaignSettings
from dataset.table import (
    CampaignDocument,
    GivenUp,
    Run,
    header,
    lines,
    require_document,
    write_document,
    write_given_up,
)
from eyelevel.commands.status import main
from measure.campaign.status import status
from measure.sites.facts import facts_of
from record.collection import choose_sites
from tuning import networks

GATES = [f"gate_number_{number}" for number in range(12)]
REASON = "https://www.example.com/a/long/path/to/a/script.js: net::ERR_QUIC_PROTOCOL_ERROR after 12 s of nothing"
PROTOCOLS = ("tcp", "tcp+", "tcp+bbr", "quic", "quic+bbr")
COLUMNS, LINES = 80, 24


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    """A campaign with many problems: many gates, in two browsers, and nine sites that were given up."""
    settings = {
        "seed": 1,
        "runs": 20,
        "repeats": 2,
        "browser": {"name": "chromium"},
        "further_browsers": {"firefox": {}},
        "sites": {"demo-light": {}},
        "networks": {"lte": asdict(networks.load()["lte"])},
        "protocols": {name: {} for name in PROTOCOLS},
    }
    facts = {"demo-light": asdict(facts_of(choose_sites(["demo-light"])[0]))}
    write_document(tmp_path, CampaignDocument(structured(settings, CampaignSettings, ""), site_facts=facts))
    runs = [
        Run("demo-light", "lte", protocol, number, browser)
        for number in range(1, 21)
        for protocol in PROTOCOLS
        for browser in ("chromium", "firefox")
    ]
    write_plan(tmp_path, [tuple(runs)])
    rows = []
    for place, run in enumerate(runs[:100]):
        row = replace(
            ROW,
            site=run.site,
            protocol=run.protocol,
            run=run.number,
            browser=run.browser,
            folder=f"runs/{place}",
            started_at=f"2026-01-01T00:{place // 6:02}:{place % 6}0+0000",
        )
        rows.append(row if place % 3 else rejected(f"{GATES[place // 3 % len(GATES)]}: {REASON}", row))
    (tmp_path / "runs.csv").write_text(header() + lines(rows))
    write_given_up(tmp_path, [GivenUp(f"site-{number}", "lte", f"gate: {REASON}", 12, "now") for number in range(9)])
    return tmp_path


def printed(campaign: Path, monkeypatch: pytest.MonkeyPatch, *, terminal: bool) -> list[str]:
    """The lines that the command prints, on a terminal of 80 x 24 or for another program."""
    if terminal:
        monkeypatch.setenv("COLUMNS", str(COLUMNS))
        monkeypatch.setenv("LINES", str(LINES))
    else:
        monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("FORCE_COLOR" if terminal else "NO_COLOR", "1")
    done = CliRunner().invoke(main, [str(campaign)], catch_exceptions=False)
    return re.sub("\x1b\\[[0-9;]*m", "", done.output).splitlines()


def test_a_campaign_of_many_troubles_stands_on_one_screen(campaign: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = printed(campaign, monkeypatch, terminal=True)
    # The prompt needs one line.
    assert len(text) < LINES, "\n".join(text)
    assert max(len(line) for line in text) <= COLUMNS
    assert text[0] == "66 of 200 runs done, 134 left, 0 given up; not running"
    assert re.fullmatch(r"done .* if resumed now, in about \d+ min; \d+ MB more", text[1])
    whole = "\n".join(text)
    assert (
        whole.count("problem: site-") == 3 and "problem: 6 more sites given up, with 72 runs (given_up.json)" in whole
    )
    assert "34 of 100 attempts rejected (" in whole
    # The gates that rejected the most are shown, with all their attempts and the last reason.
    assert re.search(r"^ gate_number_0 +3 ", whole, re.MULTILINE)
    assert "last by gate_number_0: demo-light lte" in whole
    assert re.search(r"\d+ more gates rejected attempts: '\| less' shows all", text[-1])


def test_another_program_is_told_all(campaign: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = printed(campaign, monkeypatch, terminal=False)
    assert all(line.endswith(REASON) for line in text if line.startswith("last by "))
    assert sum(line.startswith("last by ") for line in text) == len(GATES)
    (heading,) = (line for line in text if "rejected by" in line)
    assert all(f"{protocol} {browser}" in heading for protocol in PROTOCOLS for browser in ("chromium", "firefox"))


def test_runs_that_last_as_long_as_their_study_says_are_expected_to(campaign: Path) -> None:
    """A whole load of the page, such as a video's, would take much longer."""
    document = require_document(campaign)
    write_document(campaign, replace(document, settings=replace(document.settings, method={"seconds": 600})))
    (campaign / "runs.csv").write_text(header())
    expected = status(campaign).expected
    assert expected
    assert expected.seconds == pytest.approx(200 * 600, rel=0.05)
