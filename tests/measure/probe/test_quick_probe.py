"""A quick probe of an emulated network finds that network. (Thorough probes are in tests/proof.)"""

from pathlib import Path

import pytest
from support.paths import probed
from support.shells import network_namespace

from tuning import networks

LTE = networks.load()["lte"]


@pytest.mark.needs_namespaces
def test_the_profile_of_an_emulated_lte_is_lte(tmp_path: Path) -> None:
    """A busy machine makes the probe longer, not wrong: it uses medians and minima, and repeats what was sent too
    slowly."""
    with network_namespace():
        profile = probed(LTE, tmp_path, "--quick")
    assert (profile.up_mbps, profile.down_mbps) == pytest.approx((LTE.up_mbps, LTE.down_mbps), rel=0.05)
    assert profile.min_rtt_ms == pytest.approx(LTE.min_rtt_ms, rel=0.05)
    assert (profile.up_loss, profile.down_loss) == (0, 0)
    for queue in (profile.up_queue, profile.down_queue):
        assert queue and queue.kind == "droptail"
        assert queue.limit_ms == pytest.approx(LTE.queue_ms, rel=0.05)
