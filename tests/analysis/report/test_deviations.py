"""A campaign's deviations from its declaration appear on the first screen, and in its verdicts."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis import hypotheses, losses
from analysis.report.warnings import of_deviations
from analysis.runs import CampaignTable, load
from analysis.statistics.spending import LOOKS
from analysis.stopping import looks_of
from dataset.table import GivenUp, write_given_up
from eyelevel.simulate import Truth, write


@pytest.fixture
def campaign(tmp_path: Path) -> CampaignTable:
    return load(write(tmp_path / "c", Truth(sites=2, networks=("dsl", "lte"), protocols=("tcp", "quic"), runs=4)))


def declaring(campaign: CampaignTable, **values: object) -> CampaignTable:
    document = campaign.document
    return replace(campaign, document=replace(document, hypotheses=document.hypotheses | values))


def with_settings(campaign: CampaignTable, **values: Any) -> CampaignTable:
    document = campaign.document
    return replace(campaign, document=replace(document, settings=replace(document.settings, **values)))


def warnings(campaign: CampaignTable) -> list[str]:
    declared = hypotheses.of_campaign(campaign.folder, campaign.document)
    return of_deviations(campaign, declared, losses.success_rates(campaign))


def test_a_campaign_as_declared_deviates_in_nothing(campaign: CampaignTable) -> None:
    assert warnings(campaign) == []
    looks = looks_of(campaign)
    assert looks and (looks.blocks, looks.may_end) == ((2, 3, 4), False)


def test_what_was_added_is_named(campaign: CampaignTable) -> None:
    sites = {f"site-{number}": "then" for number in range(7)}
    texts = warnings(declaring(campaign, sites=sites, networks={"lte": "then"}, protocols={"quic": "then"}))
    assert len(texts) == 3
    assert texts[0].startswith("site-0, site-1, site-2, site-3, site-4 and 2 more were added after the first run")
    assert texts[1].startswith("LTE was added after the first run")
    assert texts[2].startswith("QUIC was added after the first run")


def test_runs_that_were_raised_are_looks_and_told(campaign: CampaignTable) -> None:
    raised = declaring(campaign, runs=[2, 4])
    looks = looks_of(raised)
    assert looks and (looks.blocks, looks.planned, looks.may_end) == ((2, 3, 4), 2, True)
    (text,) = warnings(raised)
    assert "was raised after the first run: 2 to 4." in text


@pytest.mark.parametrize(("runs", "blocks"), [([31], (*LOOKS, 31)), ([7, 31], (5, 7, 10, 15, 20, 25, 31))])
def test_the_looks_of_a_rule_whose_end_was_raised_are_those_of_both_ends(
    campaign: CampaignTable, runs: list[int], blocks: tuple[int, ...]
) -> None:
    looks = looks_of(with_settings(declaring(campaign, runs=runs), auto=True, runs=31))
    assert looks and looks.blocks == blocks


def test_a_campaign_that_is_not_over_says_so(campaign: CampaignTable) -> None:
    (text,) = warnings(with_settings(declaring(campaign, runs=[5]), runs=5))
    assert text == (
        "The campaign is not over: 4 of 5 declared runs of each setting were tried. 8 planned runs were not. Verdicts "
        "hold also if it ends here: there is a look after fixed numbers of runs, and each spends its part of the error."
    )
    # The campaign is over if the other runs were given up.
    write_given_up(campaign.folder, [GivenUp("site-01", "lte", "load_failed: no", 8, "then")])
    assert warnings(with_settings(declaring(campaign, runs=[5]), runs=5)) == []


def test_a_rule_that_ends_early_is_no_campaign_that_is_not_over(campaign: CampaignTable) -> None:
    assert warnings(with_settings(declaring(campaign, runs=[31]), auto=True, runs=31)) == []
