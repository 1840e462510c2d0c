"""What a campaign cannot measure is refused in one line before anything is measured."""

from pathlib import Path

import pytest

from base.errors import EyelevelError
from eyelevel.measuring import require_networks
from measure.campaign.campaign import Campaign
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
