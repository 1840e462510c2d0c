"""The content of a report's first screen, computed without drawing anything.

To print the first screens of all known campaigns for docs/known-campaigns.md:

PYTHONPATH=tests python -m support.first_screens > docs/known-campaigns.md
"""

import re
from collections import ChainMap
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd

from analysis.analyses import STAGES
from analysis.findings import Findings, Table
from analysis.hypotheses import of_campaign
from analysis.report.first_screen import answer
from analysis.report.sentences import remarks, warnings
from analysis.runs import CampaignTable, load
from analysis.samples import samples_of
from analysis.statistics.hypotheses import Hypotheses
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
ALL_ANALYSES = ChainMap(*map(dict, STAGES))
HEAD = """\
# Campaigns of which the truth is known

The analysis must find what is true, and must warn of what one has to know. Each campaign here was made by
`tests/support/known_campaigns.py`, so its truth is known; beside it stands what the first screen of its report says.
(That a campaign lacks a metric is left out.)

Written by `PYTHONPATH=tests python -m support.first_screens > docs/known-campaigns.md`. A test
(`tests/analysis/test_first_screens.py`) fails when the first screens say something else, and another when they say
something false. `PYTHONPATH=tests python -m support.known_campaigns late results/late` writes one of them, and
`make report CAMPAIGN=late` its report.

| campaign | what is true | what the first screen answers | what it warns of |
|---|---|---|---|
"""


@dataclass(frozen=True, eq=False)
class LazyFindings(Findings):
    """Findings that compute each table on demand: the first screen needs only a fraction of the time of all tables."""

    store: dict[str, pd.DataFrame] = field(default_factory=dict)

    def __getitem__(self, name: Table) -> pd.DataFrame:
        """The table of the analysis `name`."""
        if name not in self.store:
            self.store[name] = ALL_ANALYSES[name](self)
        return self.store[name]


@dataclass(frozen=True)
class Screen:
    """The answer, the warnings and the remarks of a first screen, the verdicts on which they rest
    (`analysis.statistics.confirmatory`), and the findings that have them."""

    answer: list[str]
    warnings: list[str]
    verdicts: pd.DataFrame
    findings: LazyFindings


def findings_of(campaign: CampaignTable, declaration: Hypotheses) -> LazyFindings:
    """The findings of `campaign` under the hypotheses of `declaration`, as from `analysis.analyses.analyse`."""
    samples = samples_of(campaign)
    hypotheses = declaration.restricted_to(samples.protocols, samples.metrics)
    return LazyFindings(campaign, samples, hypotheses, declaration.restricted_to(campaign.protocols, campaign.metrics))


def screen(folder: Path) -> Screen:
    """The first screen of the campaign in `folder`."""
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
    """The text of docs/known-campaigns.md."""
    rows = []
    for name, known in CAMPAIGNS.items():
        first = known_screen(name)
        texts = without(first.warnings, [NO_COLUMN]) or ["nothing"]
        cells = (name, known.truth, "<br>".join(first.answer), "<br>".join(texts))
        rows.append(f"| {' | '.join(cells)} |\n")
    return HEAD + "".join(rows)


if __name__ == "__main__":
    print(document(), end="")
