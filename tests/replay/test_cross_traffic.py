"""Background flows exist, match their names, and pass through the emulated network; otherwise validation fails."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from base.errors import EyelevelError
from dataset.checks import Check
from measure.validate.network.cross_traffic import FlowMeasurement, judge_cross_traffic
from measure.validate.site import WINDOW_PAGE, write_validation_sites
from replay import ReplaySpec, run
from tuning import protocols
from tuning.networks import Network

BUSY = Network("busy", min_rtt_ms=20, up_mbps=5, down_mbps=20, queue_ms=40, cross_traffic=("cubic", "reno"))


def failures(checks: Iterable[Check]) -> list[str]:
    return [check.name for check in checks if not check.passed]


def test_a_flow_that_does_not_move_fails() -> None:
    still = FlowMeasurement("cubic", "down", "cubic", 0.0, 20.0)
    other = FlowMeasurement("reno", "down", "reno", 19.0, 20.0)
    assert failures(judge_cross_traffic(BUSY, [still, other])) == ["cross traffic 1 (cubic down), rate"]


@pytest.mark.needs_namespaces
def test_flows_that_end_make_the_replay_fail(tmp_path: Path) -> None:
    site = write_validation_sites(tmp_path)[WINDOW_PAGE]
    spec = ReplaySpec(site.folder, BUSY, protocols.load()["tcp"], cross_traffic_awaits_turn=True)
    # Written as a pattern, so that the command line of grep does not match.
    kill = "kill -9 $(grep -l 'replay[.]cross_traffic_flows' /proc/[0-9]*/cmdline | cut -d/ -f3)"
    with pytest.raises(EyelevelError, match=r"the cross traffic ended with status -9"):
        run(spec, ["sh", "-c", kill])
