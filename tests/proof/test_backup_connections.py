"""Chromium opens a second TCP connection if the first is not established after 250 ms, unless this is disabled."""

from pathlib import Path

import pytest

from measure.campaign.single_load import single_load
from measure.captures.reading import read_connections
from measure.run.monitor import CAPTURE
from measure.run.setting import Setting
from measure.validate.protocol.settings import KEYS, LOADING, SEED, ObservationMethod
from measure.validate.site import SERVERS, WINDOW_PAGE, write_validation_sites
from tuning import protocols
from tuning.networks import Network

FAR = Network("far", min_rtt_ms=300, up_mbps=10, down_mbps=10, queue_ms=200)


@pytest.mark.needs_namespaces
@pytest.mark.parametrize(("protocol", "backed_up"), [("tcp+lowat+known", True), ("tcp+level", False)])
def test_connections_over_a_long_way_have_backups_unless_these_are_switched_off(
    protocol: str, backed_up: bool, tmp_path: Path
) -> None:
    site = write_validation_sites(tmp_path)[WINDOW_PAGE]
    with single_load(Setting(site, FAR, protocols.load()[protocol], LOADING, SEED), ObservationMethod()) as folder:
        connections = read_connections(folder / CAPTURE, folder / KEYS, "h2")
    used = [connection for connection in connections if connection.request_after_s is not None]
    assert len(used) == SERVERS
    assert (len(connections) > len(used)) is backed_up
