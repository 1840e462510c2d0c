"""The cells that RUNS=auto no longer measures."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from analysis import hypotheses
from analysis.runs import CampaignTable, load
from analysis.stopping import decided_cells
from eyelevel.simulate import Truth, write


@pytest.fixture
def campaign(tmp_path: Path) -> CampaignTable:
    """A campaign that is decided after five runs of each setting."""
    truth = Truth(sites=2, networks=("dsl",), protocols=("tcp", "quic"), runs=5, effects={"quic": -0.5})
    return with_settings(load(write(tmp_path / "c", truth)), auto=True, runs=31)


def with_settings(campaign: CampaignTable, **values: Any) -> CampaignTable:
    document = campaign.document
    return replace(campaign, document=replace(document, settings=replace(document.settings, **values)))


def decided(campaign: CampaignTable) -> list[tuple[str, str]]:
    return decided_cells(campaign, hypotheses.of_campaign(campaign.folder, campaign.document))


def test_a_network_that_is_decided_is_measured_no_more(campaign: CampaignTable) -> None:
    assert decided(campaign) == [("site-01", "dsl"), ("site-02", "dsl")]


def test_before_the_first_look_all_go_on(campaign: CampaignTable) -> None:
    runs = campaign.runs[campaign.runs["run"] <= 4]
    assert decided(replace(campaign, runs=runs)) == []


def test_a_site_that_was_added_to_it_is_measured_all_the_same(campaign: CampaignTable) -> None:
    more = with_settings(campaign, sites={**campaign.document.settings.sites, "site-99": {}})
    assert decided(more) == [("site-01", "dsl"), ("site-02", "dsl")]


def test_a_protocol_that_was_added_to_it_is_measured_all_the_same(campaign: CampaignTable) -> None:
    protocols = {**campaign.document.settings.protocols, "quic+bbr": {}}
    more = with_settings(campaign, protocols=protocols)
    document = replace(more.document, hypotheses={**more.document.hypotheses, "protocols": {"quic+bbr": "later"}})
    assert decided(replace(more, document=document)) == []
