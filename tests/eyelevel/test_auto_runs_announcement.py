"""What RUNS=auto is said to save before a campaign."""

from dataclasses import replace
from pathlib import Path

import pytest

from analysis.hypotheses import DECLARED
from eyelevel.auto_runs import announcement, plan_of
from measure.campaign.campaign import Campaign
from measure.host.lanes import Lanes
from record.demo import generate
from record.site import write_site
from tuning import networks, protocols

PROTOCOLS = {name: protocols.load()[name] for name in ("tcp", "quic")}


def campaign_behind(folder: Path, *names: str) -> Campaign:
    sites = {"demo-light": write_site(generate("demo-light"), folder / "demo-light")}
    behind = {name: networks.load()[name] for name in names}
    place = folder / "results" / "c"
    return Campaign(place, sites, behind, PROTOCOLS, runs=31, seed=1, auto=True, hypotheses=DECLARED.read_text())


@pytest.mark.slow
def test_a_campaign_announces_what_the_rule_is_expected_to_save(tmp_path: Path) -> None:
    campaign = campaign_behind(tmp_path, "dsl")
    first, _ = announcement(campaign)
    assert first.startswith("RUNS=auto: about ")
    in_lanes, *_ = announcement(replace(campaign, lanes=Lanes(2)))
    assert (first.rpartition(" of ")[2], in_lanes.rpartition(" of ")[2]) == ("10 min", "5 min")
    (line,) = announcement(replace(campaign, protocols={"tcp": PROTOCOLS["tcp"]}))
    assert "compares nothing" in line


def test_margins_are_expected_to_be_those_of_the_whole_path_behind_a_hop(tmp_path: Path) -> None:
    # The report's margins are (`analysis.runs`).
    assert plan_of(campaign_behind(tmp_path, "dsl", "geo-control")).rtt_ms == {"dsl": 24, "geo-control": 600}
