"""Of campaigns of known truth the report's first screen says what is true, and warns of what one must know."""

import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from click.testing import CliRunner
from markupsafe import escape
from support.figure_layout import only_lay_out
from support.known_campaigns import (
    CAMPAIGNS,
    DISAGREEMENT,
    DRIFT,
    EMPTY_SETTING,
    FIXED_ORDER,
    LOSSES,
    NOT_TOGETHER,
    ONE_SITE,
    PLACE,
    write,
)

from analysis import analyses
from analysis.findings import Findings
from analysis.hypotheses import of_campaign
from analysis.report import write as write_module
from analysis.report.sentences import warnings
from analysis.report.write import workers
from analysis.runs import load
from analysis.samples import OVER_SITES
from analysis.text import label
from eyelevel.commands.report import main

# How the first screen says each kind of warning.
PHRASES = {
    EMPTY_SETTING: "no valid run|not been tried",
    NOT_TOGETHER: "not measured together|have both protocols",
    PLACE: "depend on the place in the block",
    FIXED_ORDER: "not measured in random order",
    DRIFT: "from the first block to the last|first and the second half",
    LOSSES: "lost more loads",
    DISAGREEMENT: "Sites disagree",
    ONE_SITE: "hangs on one site",
}


# Of these, one of each kind of answer, the whole report is written.
REPORTED = ("null", "broken", "late", "early")


def findings_of(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Findings:
    """What the analysis of the campaign in `folder` finds, but for the mixed models, of which the first screen says
    nothing: they take longer than all the rest."""
    monkeypatch.setitem(analyses.ANALYSES, "mixed_models", lambda findings: pd.DataFrame(columns=OVER_SITES))
    campaign = load(folder)
    with workers() as pool:
        return analyses.analyse(campaign, of_campaign(folder, campaign.document), pool)


def findings_and_page_of(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Findings, str]:
    """What the report of the campaign in `folder` is written from, and its page."""
    results: list[Findings] = []

    def analyse(*arguments: Any) -> Findings:
        results.append(analyses.analyse(*arguments))
        return results[-1]

    only_lay_out(monkeypatch)
    monkeypatch.setattr(write_module, "analyse", analyse)
    done = CliRunner().invoke(main, [str(folder)])
    assert done.exit_code == 0, done.output
    (findings,) = results
    return findings, (folder / "report" / "index.html").read_text()


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CAMPAIGNS if name != "full"])
def test_the_first_screen_says_what_is_true(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = write(tmp_path, name)
    if name in REPORTED:
        findings, page = findings_and_page_of(tmp_path, monkeypatch)
        texts = warnings(findings)
        assert [text for text in texts if escape(text) not in page] == []
    else:
        findings = findings_of(tmp_path, monkeypatch)
        texts = warnings(findings)
    for row in findings["confirmatory"].to_dict("records"):
        assert row["verdict"] in known.screen.words(row["network"]), row
    kinds = {kind: [text for text in texts if re.search(phrase, text)] for kind, phrase in PHRASES.items()}
    assert {kind for kind in known.screen.warnings if not kinds[kind]} == set(), texts
    assert {kind: kinds[kind] for kind in known.screen.silent if kinds[kind]} == {}
    wanted = " ".join(text for kind in known.screen.warnings for text in kinds[kind])
    assert [named for named in known.screen.named if label(named) not in wanted] == []
    spared = [rf"(?<![\w+]){re.escape(label(name))}(?![\w+])" for name in known.screen.spared]
    assert [pattern for pattern in spared if re.search(pattern, wanted)] == []
