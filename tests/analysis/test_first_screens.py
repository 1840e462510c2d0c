"""Of campaigns of known truth the report's first screen says what is true, and warns of what one must know."""

import re
from pathlib import Path

import pytest
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

from analysis.analyses import analyse
from analysis.hypotheses import of_campaign
from analysis.report.sentences import warnings
from analysis.report.write import workers
from analysis.runs import load
from analysis.text import label

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


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in CAMPAIGNS if name != "full"])
def test_the_first_screen_says_what_is_true(name: str, tmp_path: Path) -> None:
    known = write(tmp_path, name)
    campaign = load(tmp_path)
    with workers() as pool:
        findings = analyse(campaign, of_campaign(tmp_path, campaign.document), pool)
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
