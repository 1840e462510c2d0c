"""The announcement before a campaign."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from analysis.hypotheses import DECLARED
from eyelevel.announcement import announcement, plan_of
from measure.campaign.campaign import Campaign
from measure.host.lanes import Lanes
from record.demo import generate
from record.site import write_site
from tuning import networks, protocols

PROTOCOLS = {name: protocols.load()[name] for name in ("tcp", "quic")}


def campaign_on(folder: Path, *names: str) -> Campaign:
    sites = {"demo-light": write_site(generate("demo-light"), folder / "demo-light")}
    by_name = {name: networks.load()[name] for name in names}
    place = folder / "results" / "c"
    return Campaign(place, sites, by_name, PROTOCOLS, runs=31, seed=1, auto=True, hypotheses=DECLARED.read_text())


@pytest.mark.slow
def test_a_campaign_announces_what_the_rule_is_expected_to_save(tmp_path: Path) -> None:
    campaign = campaign_on(tmp_path, "dsl")
    *_, first, _ = announcement(campaign)
    assert first.startswith("RUNS=auto: about ")
    *_, in_lanes, _ = announcement(replace(campaign, lanes=Lanes(2)))
    assert (first.rpartition(" of ")[2], in_lanes.rpartition(" of ")[2]) == ("6 min", "3 min")
    (line,) = announcement(replace(campaign, protocols={"tcp": PROTOCOLS["tcp"]}))
    assert "nothing to compare" in line


def test_a_campaign_says_what_it_can_show(tmp_path: Path) -> None:
    campaign = replace(campaign_on(tmp_path, "dsl", "mss"), auto=False, runs=5)
    heading, dsl, mss = announcement(campaign)
    assert heading == "chances after 5 runs of each that a test shows the true difference, if it is as stated:"
    assert re.match("  dsl: [^,]+ to show a difference of 5 %, ", dsl)
    assert "(less than 12 ms, finer than one picture of the browser (17 ms))" in dsl
    assert "(less than 380 ms)" in mss
    assert announcement(replace(campaign, protocols={"tcp": PROTOCOLS["tcp"]})) == []


def test_margins_use_the_round_trip_time_of_the_whole_path_with_a_hop(tmp_path: Path) -> None:
    # The report uses the same times (`analysis.runs`).
    assert plan_of(campaign_on(tmp_path, "dsl", "geo-control")).rtt_ms == {"dsl": 24, "geo-control": 600}
