"""What a campaign cannot measure is refused in one line before anything is measured."""

from dataclasses import replace
from pathlib import Path

import pytest

from base.errors import EyelevelError
from eyelevel.measuring import require_networks, require_one_protocol
from measure.campaign.campaign import Campaign
from measure.campaign.method import PAGES
from studies.states.measure import StatesMethod
from tuning import networks, protocols


@pytest.mark.parametrize("name", ["lte", "delay10"])
def test_a_server_that_cannot_serve_behind_a_network_is_named_beforehand(name: str, tmp_path: Path) -> None:
    chosen = {one: protocols.load()[one] for one in ("tcp", "caddy-h3")}
    campaign = Campaign(tmp_path, {}, {name: networks.load()[name]}, chosen, runs=1, seed=1)
    if name == "lte":
        require_networks(campaign)
        return
    with pytest.raises(EyelevelError, match=f"^caddy-h3: caddy's QUIC can lose half of .* as that of {name}$"):
        require_networks(campaign)
    assert not list(tmp_path.iterdir())


def test_a_study_of_single_protocols_refuses_servers_that_speak_two(tmp_path: Path) -> None:
    chosen = {"deployed-cold": protocols.load()["deployed-cold"]}
    campaign = Campaign(tmp_path, {}, {"lte": networks.load()["lte"]}, chosen, runs=1, seed=1, method=PAGES)
    require_one_protocol(campaign)
    with pytest.raises(EyelevelError, match="the servers of deployed-cold speak h2 and h3, of which only"):
        require_one_protocol(replace(campaign, method=StatesMethod()))
