"""How often `eyelevel compare` calls one of two equal campaigns worse: in simulation, a thousand times in each of
several worlds.

The results are printed.
"""

import numpy as np
import pytest
from support.analysis_truth import same_campaigns
from support.rates import lower_bound, tell, upper_bound

from analysis import hypotheses
from analysis.campaign_changes import CampaignChange, compare
from analysis.runs import CampaignTable
from analysis.statistics.hypotheses import Hypotheses
from analysis.statistics.outcomes import FASTER, SLOWER
from eyelevel.simulate import Truth

COMPARISONS = 1000
DECLARED = hypotheses.load()
CAMPAIGN = Truth(networks=("dsl", "lte"), protocols=("tcp+", "quic"), effects={"quic": -0.05})

pytestmark = pytest.mark.timeout(1800)


def restricted(campaign: CampaignTable) -> Hypotheses:
    return DECLARED.restricted_to(campaign.protocols, campaign.metrics)


def changed(truth: Truth, number: int) -> CampaignChange:
    """The comparison of two equal campaigns, in which no slowdown of B is allowed."""
    a, b = same_campaigns(truth, number)
    return compare(a, b, restricted(a), worse_than=0.0)


@pytest.mark.parametrize("noise", ["normal", "lognormal", "heavy"])
@pytest.mark.parametrize(("sites", "runs"), [(1, 10), (5, 3), (5, 10), (5, 31), (12, 5)])
def test_no_more_are_said_to_be_worse_than_the_page_states(
    sites: int, runs: int, noise: str, capsys: pytest.CaptureFixture[str]
) -> None:
    truth = Truth(**{**vars(CAMPAIGN), "sites": sites, "runs": runs, "noise": noise})
    changes = [changed(truth, number) for number in range(COMPARISONS)]
    alarms = sum(change.is_worse for change in changes)
    differences = sum(
        table["verdict"].isin([FASTER, SLOWER]).any()
        for change in changes
        for table in (change.over_sites, change.sites)
    )
    size = f"{sites} sites, {runs} runs, {noise}"
    rate = f"{alarms / COMPARISONS:.1%}, below {upper_bound(alarms, COMPARISONS):.1%}"
    tell(capsys, "worse", size, COMPARISONS, rate, f"tables with a difference: {differences / COMPARISONS / 2:.1%}")
    # A correct rate passes, although chance moves it above or below its true value.
    assert lower_bound(alarms, COMPARISONS) <= changes[0].false_alarm_share, alarms
    assert lower_bound(int(differences), 2 * COMPARISONS) <= DECLARED.significant_p, differences


@pytest.mark.parametrize(("slow", "lost"), [(1 / 12, 0.0), (0.0, 0.05)])
def test_slow_and_lost_loads_that_both_have_alike_make_no_more_alarms(
    slow: float, lost: float, capsys: pytest.CaptureFixture[str]
) -> None:
    excluded = dict.fromkeys(CAMPAIGN.protocols, lost)
    truth = Truth(**{**vars(CAMPAIGN), "sites": 8, "runs": 15, "excluded": excluded})
    changes = []
    for number in range(COMPARISONS):
        pair, draw = same_campaigns(truth, number), np.random.default_rng(number)
        for campaign in pair:
            campaign.runs.loc[draw.random(len(campaign.runs)) < slow, ["si", "plt"]] *= 6
        changes.append(compare(*pair, restricted(pair[0]), worse_than=0.0))
    alarms = sum(change.is_worse for change in changes)
    of_shares = sum(change.shares["worse"].any() for change in changes)
    rate = f"{alarms / COMPARISONS:.1%}, below {upper_bound(alarms, COMPARISONS):.1%}"
    shares = f"by slow or lost loads: {of_shares / COMPARISONS:.1%}"
    tell(capsys, "worse", f"{slow:.0%} slow, {lost:.0%} lost", COMPARISONS, rate, shares)
    assert lower_bound(alarms, COMPARISONS) <= changes[0].false_alarm_share, alarms
    assert lower_bound(int(of_shares), COMPARISONS) <= DECLARED.significant_p, of_shares


@pytest.mark.parametrize(("slower", "runs"), [(0.1, 10), (0.05, 31)])
def test_what_is_slower_by_much_is_found_nearly_always(
    slower: float, runs: int, capsys: pytest.CaptureFixture[str]
) -> None:
    regressions = 0
    truth = Truth(**{**vars(CAMPAIGN), "sites": 5, "runs": runs})
    for number in range(COMPARISONS):
        a, b = same_campaigns(truth, number)
        b.runs[["si", "plt"]] *= 1 + slower
        regressions += compare(a, b, restricted(a), worse_than=0.0).is_worse
    tell(capsys, f"{slower:.0%} slower", f"{runs} runs", COMPARISONS, f"{regressions / COMPARISONS:.1%} found")
    assert lower_bound(regressions, COMPARISONS) > 0.95
