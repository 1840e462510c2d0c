"""The content of a report's first screen, computed without drawing anything.

To print the first screens of all known campaigns for docs/contributors/known-campaigns.md:

PYTHONPATH=tests python -m support.first_screens > docs/contributors/known-campaigns.md
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from analysis.findings import Findings
from analysis.hypotheses import of_campaign
from analysis.report.conclusion import LazyFindings, findings_of
from analysis.report.first_screen import lines, qualifications, sentences
from analysis.report.sentences import remarks, warnings
from analysis.runs import load, plain_texts
from support.known_campaigns import (
    ADDED,
    CAMPAIGNS,
    CARRY_OVER,
    DISAGREEMENT,
    DRIFT,
    EMPTY_SETTING,
    FEW,
    FIXED_ORDER,
    IMPOSSIBLE,
    LOSSES,
    NO_COLUMN,
    NO_TIME,
    NOT_TOGETHER,
    ONE_SITE,
    PLACE,
    PROCESSOR,
    UNUSUAL,
    WANDER,
    write,
)

# The phrases by which the first screen expresses each kind of warning, and each fact.
PHRASES = {
    EMPTY_SETTING: "no valid run|not been tried",
    NOT_TOGETHER: "not measured together|have both protocols|has both protocols",
    PLACE: "depend on the place in the block",
    FIXED_ORDER: "not measured in random order|always measured in the same order",
    DRIFT: "from the first block to the last|first and the second half",
    LOSSES: "lost more loads|rests on which runs were lost",
    DISAGREEMENT: "Pages differ|has exceptions",
    ONE_SITE: "changes the mean of",
    ADDED: "added after the first run",
    PROCESSOR: "longer for a processor|waited for a processor",
    IMPOSSIBLE: "longer waits for a processor than a load can have",
    NO_TIME: "is 0 or missing in",
    CARRY_OVER: "depend on which protocol was loaded before",
    WANDER: "wanders while it is measured",
    NO_COLUMN: "The campaign has no column of",
    FEW: "The fewest valid runs of a setting|intervals over sites are wide",
    UNUSUAL: "comparisons of single sites have unusual runs",
}
HEAD = """\
# Known campaigns

The analysis must find what is true, and must warn of what limits it. `tests/support/known_campaigns.py` makes each of
these campaigns, so its truth is known; the answer and the warnings are those of its report's first screen. (Warnings
that a campaign lacks a metric are left out.)

Written by `PYTHONPATH=tests python -m support.first_screens > docs/contributors/known-campaigns.md`. A test
(`tests/analysis/test_first_screens.py`) fails when the first screens say something else, and another when they say
something false. `PYTHONPATH=tests python -m support.known_campaigns late results/late` writes one of them, and
`make report CAMPAIGN=late` its report.

| campaign | truth | answer | warnings |
|---|---|---|---|
"""


@dataclass(frozen=True)
class Screen:
    """The answer, the warnings and the remarks of a first screen, the verdicts on which they rest
    (`analysis.statistics.confirmatory`), and the findings that have them."""

    answer: list[str]
    warnings: list[str]
    verdicts: pd.DataFrame
    findings: LazyFindings


def answer(findings: Findings) -> list[str]:
    """The answer: a sentence for each pair, the lines of all declared comparisons, and what qualifies them."""
    return [*sentences(findings), *(line.text for line in lines(findings)), *qualifications(findings)]


@plain_texts()
def screen(folder: Path) -> Screen:
    """The first screen of the campaign in `folder`, computed as a report does it."""
    campaign = load(folder)
    findings = findings_of(campaign, of_campaign(folder, campaign.document))
    texts = [*warnings(findings), *remarks(findings)]
    return Screen(answer(findings), texts, findings["confirmatory"], findings)


def said(findings: Findings) -> str:
    """The answer of the first screen on `findings` as one text."""
    return " ".join(answer(findings))


@cache
def known_screen(name: str) -> Screen:
    """The first screen of the known campaign `name`."""
    with TemporaryDirectory() as folder:
        write(Path(folder), name)
        return screen(Path(folder))


def of_kind(texts: Iterable[str], kind: str) -> list[str]:
    """The `texts` that are a warning, or a fact, of this kind."""
    return [text for text in texts if re.search(PHRASES[kind], text)]


def without(texts: Iterable[str], kinds: Iterable[str]) -> list[str]:
    """The `texts` that are of none of these kinds."""
    return [text for text in texts if not any(re.search(PHRASES[kind], text) for kind in kinds)]


def document() -> str:
    """The text of docs/contributors/known-campaigns.md."""
    rows = []
    for name, known in CAMPAIGNS.items():
        first = known_screen(name)
        texts = without(first.warnings, [NO_COLUMN]) or ["nothing"]
        cells = (name, known.truth, "<br>".join(first.answer), "<br>".join(texts))
        rows.append(f"| {' | '.join(cells)} |\n")
    return HEAD + "".join(rows)


if __name__ == "__main__":
    print(document(), end="")
