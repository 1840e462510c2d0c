"""Validation: it passes what is as configured, and each check fails when its setting is broken on purpose."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from measure.validate.checks import Check, between, same, within
from measure.validate.network import LOST_PACKETS_QUICK, judge_network, measure_network
from measure.validate.network_probe import Direction, NetworkMeasurement
from measure.validate.protocol import judge_protocol, observe_protocol
from measure.validate.site import WINDOW_PAGE, write_validation_sites
from record.site import Site
from tuning import protocols
from tuning.networks import Network
from tuning.protocols import Protocol

NETWORK = Network("n", min_rtt_ms=20, up_mbps=4, down_mbps=16, queue_ms=60, loss=0.1)
PROTOCOLS = protocols.load()


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Site]:
    return write_validation_sites(tmp_path_factory.mktemp("sites"))


def failed(claimed: Network, applied: Network, sites: Mapping[str, Site]) -> dict[str, Check]:
    """The checks of `claimed` that fail when `applied` is what there is."""
    measurement = measure_network(applied, sites[WINDOW_PAGE], LOST_PACKETS_QUICK)
    return {check.name.partition(" of ")[0]: check for check in judge_network(claimed, measurement) if not check.passed}


@pytest.mark.needs_root
@pytest.mark.alone
@pytest.mark.parametrize(
    ("applied", "wrong"),
    [
        (NETWORK, set()),
        (replace(NETWORK, min_rtt_ms=24), {"minimum RTT", "median RTT"}),
        (replace(NETWORK, up_mbps=3.88), {"uplink rate"}),
        (replace(NETWORK, queue_ms=40), {"uplink queue", "downlink queue"}),
        (replace(NETWORK, loss=0), {"uplink loss", "downlink loss"}),
    ],
    ids=["as configured", "delay", "rate", "queue", "loss"],
)
def test_a_network_that_is_not_as_configured_fails_its_check(
    applied: Network, wrong: set[str], sites: Mapping[str, Site]
) -> None:
    measured = failed(NETWORK, applied, sites)
    assert set(measured) == wrong, measured


@pytest.mark.needs_root
@pytest.mark.loads(group="validation", lanes=2)  # most of it is waiting
@pytest.mark.parametrize(
    ("claimed", "applied", "wrong"),
    [
        ("tcp+", {}, set()),
        ("tcp+", {"initial_window_packets": 20}, {"initial window"}),
        ("tcp+", {"pacing": False}, {"first flight spread over a round trip"}),
        ("tcp+", {"congestion_control": "bbr"}, {"congestion control of the server", "share of a link with 8% loss"}),
        ("tcp+", {"tls_group": "P-256"}, {"key exchange group", "round trips before the first request"}),
        ("tcp+tfo", {}, set()),
        ("tcp+tfo", {"fast_open": False}, {"data in the SYN"}),
        ("tcp+0rtt", {"early_data": False}, {"servers that took early data", "round trips before the first request"}),
        ("tcp+mss1238", {}, set()),
        ("tcp+", {"mss_bytes": 1238}, {"maximum segment size", "initial window"}),
        ("tcp", {"server_sysctls": {"net.ipv4.tcp_slow_start_after_idle": "0"}}, {"window after a pause"}),
        (
            "quic",
            {"congestion_control": "bbr"},
            {
                "connection options that arrived",
                "congestion control of the server",
                "share of a link with 8% loss",
            },
        ),
    ],
    ids=[
        "as configured",
        "initial window",
        "pacing",
        "congestion control",
        "TLS group",
        "TFO",
        "no TFO",
        "no early data",
        "short segments",
        "segments too short",
        "idle restart",
        "options",
    ],
)
def test_a_protocol_that_is_not_as_configured_fails_its_check(
    claimed: str, applied: dict[str, object], wrong: set[str], sites: Mapping[str, Site]
) -> None:
    protocol: Protocol = replace(PROTOCOLS[claimed], **applied)  # type: ignore[arg-type]
    checks = judge_protocol(PROTOCOLS[claimed], observe_protocol(protocol, sites))
    # BBR's first window is somewhat more than what it is set to.
    allowed = {"initial window"} if "bbr" in str(applied) else set[str]()
    measured = {check.name: check for check in checks if not check.passed}
    assert set(measured) - allowed == wrong, measured


def test_a_rate_that_holds_between_packets_but_not_over_all_is_found() -> None:
    network = Network("n", min_rtt_ms=20, up_mbps=4, down_mbps=4, queue_ms=60)
    steady = Direction(mbps=4.0, sent=4000, lost=0, queue_bytes=30_000, mean_mbps=3.9)
    resting = replace(steady, mean_mbps=3.7)
    checks = judge_network(network, NetworkMeasurement(20, 20, 20, 100, 0.1, up=steady, down=resting))
    assert [check.name for check in checks if not check.passed] == ["downlink mean rate"]


def test_the_queue_of_a_trace_is_told_to_be_unchecked() -> None:
    network = Network("n", min_rtt_ms=20, up_mbps=4, down_mbps=4, queue_ms=60, down_trace="a file")
    up = Direction(mbps=4.0, sent=4000, lost=0, queue_bytes=30_000, mean_mbps=4)
    checks = judge_network(network, NetworkMeasurement(20, 20, 20, 100, 0.1, up=up, down=replace(up, queue_bytes=None)))
    assert {check.name: check.checked for check in checks if "queue" in check.name} == {
        "uplink queue": True,
        "downlink queue": False,
    }


def test_checks_compare_as_they_say() -> None:
    assert within("s", "n", 24, 24.9, 1, "ms").passed
    assert not within("s", "n", 24, 25.1, 1, "ms").passed
    assert not between("s", "n", 1, 0, 2, "x").passed
    assert not same("s", "n", "h3", "h2").passed
    check = within("s", "n", 262_500, 261_000, 6_700, "bytes")
    assert (check.configured, check.measured, check.tolerance) == ("262,500 bytes", "261,000 bytes", "± 6,700 bytes")


def test_sites_are_the_same_every_time(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        write_validation_sites(tmp_path / folder)
    files = sorted(path.relative_to(tmp_path / "a") for path in (tmp_path / "a").rglob("*") if path.is_file())
    assert files
    assert all((tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes() for file in files)
