"""Background flows are there, are what they are called, and go through the emulated network; else validation fails."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import pytest

from base.errors import EyelevelError
from measure.validate.checks import Check
from measure.validate.company import FlowMeasurement, judge_company, measure_company
from measure.validate.site import WINDOW_PAGE, write_validation_sites
from replay import ReplaySpec, run
from tuning import protocols
from tuning.networks import Network

BUSY = Network("busy", min_rtt_ms=20, up_mbps=5, down_mbps=20, queue_ms=40, company=("cubic", "reno"))


def failures(checks: Iterable[Check]) -> list[str]:
    return [check.name for check in checks if not check.passed]


@pytest.mark.needs_namespaces
@pytest.mark.timing
def test_flows_fill_the_link_and_are_told_from_others(tmp_path: Path) -> None:
    measured = measure_company(BUSY, write_validation_sites(tmp_path)[WINDOW_PAGE])
    assert failures(judge_company(BUSY, measured)) == [], measured
    assert [flow.congestion_control for flow in measured] == ["cubic", "reno"]
    assert all(flow.mbps > 1 for flow in measured)
    # They are not those of another network.
    assert failures(judge_company(replace(BUSY, company=("reno", "reno")), measured)) == [
        "company 1 (reno down), congestion control"
    ]
    assert failures(judge_company(replace(BUSY, down_mbps=16), measured)) == ["company, all down"]
    assert failures(judge_company(replace(BUSY, down_mbps=30), measured)) == ["company, all down"]
    assert failures(judge_company(replace(BUSY, min_rtt_ms=40), measured)) == [
        "company 1 (cubic down), least round trip",
        "company 2 (reno down), least round trip",
    ]


def test_a_flow_that_does_not_move_fails() -> None:
    still = FlowMeasurement("cubic", "down", "cubic", 0.0, 20.0)
    other = FlowMeasurement("reno", "down", "reno", 19.0, 20.0)
    assert failures(judge_company(BUSY, [still, other])) == ["company 1 (cubic down), rate"]


@pytest.mark.needs_namespaces
def test_flows_that_end_make_the_replay_fail(tmp_path: Path) -> None:
    site = write_validation_sites(tmp_path)[WINDOW_PAGE]
    spec = ReplaySpec(site.folder, BUSY, protocols.load()["tcp"], company_awaits_turn=True)
    # As a pattern, it is not in the command line of the grep itself.
    kill = "kill -9 $(grep -l 'replay[.]company_flows' /proc/[0-9]*/cmdline | cut -d/ -f3)"
    with pytest.raises(EyelevelError, match=r"the company ended with status -9"):
        run(spec, ["sh", "-c", kill])
