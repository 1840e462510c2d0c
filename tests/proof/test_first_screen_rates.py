"""How often the first screen warns about campaigns without faults, and about campaigns with faults.

All of its warnings count except facts about the campaign (few sites, missing metrics, skewed samples). The results are
printed, including the number of campaigns with skewed samples.
"""

from collections import Counter

import pytest
from support.first_screens import PHRASES, of_kind, without
from support.known_campaigns import DRIFT, FEW, NO_COLUMN, NOT_TOGETHER, UNUSUAL
from support.rates import lower_bound, tell, upper_bound
from support.worlds import World, campaign

from analysis import hypotheses
from analysis.report.conclusion import findings_of
from analysis.report.sentences import warnings

# The largest allowed share of faultless campaigns with a warning.
FALSE_ALARMS = 0.05
# Together they take about 45 minutes on one core.
NULL_CAMPAIGNS, FAULTY_CAMPAIGNS = 1000, 200
FACTS = frozenset({FEW, NO_COLUMN, UNUSUAL})
DECLARED = hypotheses.load()

pytestmark = pytest.mark.timeout(3600)


def first_screen_warnings(world: World, seed: int) -> list[str]:
    return warnings(findings_of(campaign(world, seed), DECLARED))


def kinds(texts: list[str]) -> set[str]:
    """The kinds of warning in `texts`; a warning of an unknown kind is its own kind."""
    return {kind for kind in PHRASES if of_kind(texts, kind)} | set(without(texts, PHRASES))


@pytest.mark.parametrize(
    "world",
    [World(), World(runs=31), World(sites=6, runs=3, scatter=0.2)],
    ids=["12 sites, 10 runs", "12 sites, 31 runs", "6 sites, 3 runs, 20 % scatter"],
)
def test_of_a_hundred_null_campaigns_five_have_a_warning_at_most(
    world: World, capsys: pytest.CaptureFixture[str]
) -> None:
    alarms, of_kinds = 0, Counter[str]()
    for seed in range(NULL_CAMPAIGNS):
        found_kinds = kinds(first_screen_warnings(world, seed))
        alarms += bool(found_kinds - FACTS)
        of_kinds.update(found_kinds)
    bound = upper_bound(alarms, NULL_CAMPAIGNS)
    size = f"{world.sites} sites, {world.runs} runs, scatter {world.scatter:.0%}"
    rate = f"{alarms / NULL_CAMPAIGNS:.1%}, below {bound:.1%}"
    numbers = [f"{number} x {kind}" for kind, number in of_kinds.items() if kind not in (FEW, NO_COLUMN)]
    tell(capsys, "false alarm", size, NULL_CAMPAIGNS, rate, "; ".join(numbers))
    assert bound <= FALSE_ALARMS, of_kinds


@pytest.mark.parametrize(
    ("world", "kind"),
    [
        (World(drift=0.3), DRIFT),
        (World(drift=0.3, runs=31), DRIFT),
        (World(late="quic"), NOT_TOGETHER),
        (World(late="quic", runs=31), NOT_TOGETHER),
        (World(late="tcp"), NOT_TOGETHER),
    ],
    ids=["drift", "drift, 31 runs", "late QUIC", "late QUIC, 31 runs", "late stock TCP"],
)
def test_every_campaign_with_a_fault_has_its_warning(
    world: World, kind: str, capsys: pytest.CaptureFixture[str]
) -> None:
    count = sum(bool(of_kind(first_screen_warnings(world, seed), kind)) for seed in range(FAULTY_CAMPAIGNS))
    power = f"{count / FAULTY_CAMPAIGNS:.1%}, above {lower_bound(count, FAULTY_CAMPAIGNS):.1%}"
    tell(capsys, kind, f"{world.sites} sites, {world.runs} runs", FAULTY_CAMPAIGNS, power)
    assert count == FAULTY_CAMPAIGNS
