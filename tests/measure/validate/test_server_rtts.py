"""Each server of a site is as far beyond the network as configured, and a check finds one that is not."""

from dataclasses import replace
from pathlib import Path

import pytest

from measure.validate.network.server_rtts import NETWORK, DelayedSite, judge_server_rtts, measure_server_rtts
from record.http1 import Response
from record.site import Exchange, Recording, write_site
from replay import ReplaySpec
from tuning import protocols

EXTRA_MS = (0.0, 5.0, 12.345, 50.0, 100.0, 200.0)


@pytest.fixture
def delayed(tmp_path: Path) -> DelayedSite:
    page = Exchange("GET", "https://far.example/", Response(200, "OK", (), b"<p>Hello"), "192.0.2.1")
    others = (replace(page, url=f"https://h{n}.far.example/", recorded_ip=f"192.0.2.{n}") for n in range(2, 7))
    site = write_site(Recording(page.url, (page, *others), {"tool": "test"}), tmp_path / "far")
    return DelayedSite(site.name, site.folder, dict(zip(site.servers, EXTRA_MS, strict=True)))


@pytest.mark.timing
@pytest.mark.needs_namespaces
def test_servers_are_as_far_as_set_and_one_that_is_not_is_found(delayed: DelayedSite) -> None:
    checks = judge_server_rtts(delayed, measure_server_rtts(delayed))
    assert [check.configured for check in checks] == [f"{extra_ms:.3g} ms" for extra_ms in EXTRA_MS]
    assert [check.name for check in checks if not check.passed] == []
    # The emulator gives one server half a millisecond too little, and another no extra round-trip time at all.
    *_, nearer, forgotten = delayed.extra_rtts_ms
    wrong = {**delayed.extra_rtts_ms, nearer: delayed.extra_rtts_ms[nearer] - 0.5, forgotten: 0.0}
    spec = ReplaySpec(delayed.folder, NETWORK, protocols.load()["quic"], extra_rtts_ms=wrong)
    checks = judge_server_rtts(delayed, measure_server_rtts(delayed, spec))
    failed = {check.name.rpartition(" ")[2] for check in checks if not check.passed}
    assert failed == {nearer, forgotten}


def test_a_server_that_does_not_answer_fails(delayed: DelayedSite) -> None:
    silent, *others = delayed.extra_rtts_ms
    measured = {address: [NETWORK.min_rtt_ms + delayed.extra_rtts_ms[address]] for address in others} | {silent: []}
    assert [c.name for c in judge_server_rtts(delayed, measured) if not c.passed] == [f"answers of {silent}"]
