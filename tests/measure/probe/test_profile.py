"""The profile of a path: reading it gives a network with the same numbers, and it states its limitations."""

import tomllib
from dataclasses import replace
from pathlib import Path

import pytest

from base.errors import EyelevelError
from measure.probe import profile
from measure.probe.path import PathMeasurement, Way
from tuning import networks

WAY = Way(
    mbps=10.5,
    low_mbps=10.4,
    high_mbps=10.6,
    wait_ms=198.0,
    low_wait_ms=197.0,
    high_wait_ms=199.5,
    packets=900,
    fills=True,
    is_managed=False,
    counts_packets=False,
    sent=5000,
    lost=0,
    behind_lost=0,
)
PATH = PathMeasurement(
    address="192.0.2.7",
    port=8617,
    is_v6=False,
    min_rtt_ms=74.2,
    median_rtt_ms=75.0,
    late_rtt_ms=80.0,
    echoes=99,
    echoes_sent=100,
    up=replace(WAY, mbps=2.8, low_mbps=2.79, high_mbps=2.81),
    down=WAY,
    up_bytes=4_000_000,
    down_bytes=9_000_000,
    seconds=31.0,
)


def test_what_was_measured_is_a_network_with_its_source(tmp_path: Path) -> None:
    text = profile.profile_of(PATH, "far.example", "mine")
    network = profile.read_back(text, "mine")
    assert (network.up_mbps, network.down_mbps, network.min_rtt_ms) == (2.8, 10.5, 74.2)
    assert network.down_queue and network.down_queue.limit_ms == 198
    assert "to far.example and back" in tomllib.loads(text)["mine"]["source"]
    assert "0 of 5000 packets lost without load" in text and "0 to 0.074 %" in text
    assert "198 ms in a full queue, 197 to 199.5 for 80 %" in text
    file = tmp_path / "mine" / networks.FILENAME
    profile.add(text, file)
    profile.add(profile.profile_of(PATH, "far.example", "other"), file)
    assert {"mine", "other"} <= set(networks.load(file))
    with pytest.raises(EyelevelError, match="there is already a network 'other'"):
        profile.require_place(file, "other")


@pytest.mark.parametrize("host", ["\x1b]0;x\x07'\"\\", 'a"\nup_mbps = 1', "ü.example", "::1"])
def test_a_host_cannot_write_into_the_profile(host: str) -> None:
    name = profile.name_of(host)
    text = profile.profile_of(PATH, host, name)
    assert set(tomllib.loads(text)) == {name}
    assert profile.read_back(text, name).up_mbps == 2.8
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("changed", "warning"),
    [
        ({}, None),
        ({"low_mbps": 4.0}, "the rate down varied from 4 to 10.6 Mbit/s"),
        ({"is_managed": True}, "the queue down drops packets before it is full (AQM?)"),
        ({"fills": False}, "the queue down did not fill: it is longer than 198 ms"),
        ({"wait_ms": 0.3}, "packets down are dropped with hardly any queue (a policer?)"),
        ({"counts_packets": True}, "the queue down is as long in packets"),
        ({"lost": 100, "behind_lost": 60}, "losses down come in bursts: 60 of 100"),
        ({"lost": 100, "behind_lost": 2}, None),
    ],
)
def test_what_a_profile_does_not_say_is_said(changed: dict[str, float], warning: str | None) -> None:
    measured = replace(PATH, down=replace(WAY, **changed))  # type: ignore[arg-type]
    warnings = list(profile.warnings(measured))
    assert len(warnings) == (warning is not None)
    if warning:
        assert warning in warnings[0]
        assert f"# Beware: {warnings[0]}" in profile.profile_of(measured, "far.example", "mine")
    network = profile.read_back(profile.profile_of(measured, "far.example", "mine"), "mine")
    assert network.loss_of("down") == changed.get("lost", 0) / 5000
    assert (network.down_queue and network.down_queue.limit_packets is not None) == ("counts_packets" in changed)


def test_the_interval_of_a_loss_is_clopper_and_pearsons_and_wider_for_bursts() -> None:
    # The interval for 10 in 100: 4.90 to 17.62 %, from tables.
    assert profile.interval(10, 100, 0.0) == pytest.approx((0.0490, 0.1762), abs=0.0001)
    assert profile.interval(0, 100, 0.0) == pytest.approx((0, 1 - 0.025 ** (1 / 100)))
    assert profile.interval(100, 100, 0.0)[1] == 1
    low, high = profile.interval(10, 100, 0.5)
    assert low < 0.0490 and high > 0.1762
