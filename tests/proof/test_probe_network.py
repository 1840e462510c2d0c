"""Probes find the settings of networks: rates, round trips and queues within 5 %, losses within their interval."""

import re
from pathlib import Path

import pytest
from scipy import stats
from support.paths import probed
from support.shells import network_namespace

from tuning import networks
from tuning.impairments.contract import DOWN, UP
from tuning.networks import Network
from tuning.queues import Queue

pytestmark = [pytest.mark.needs_namespaces, pytest.mark.timing]

NETWORKS = networks.load()
# The comments in a profile with the number of packets lost without load, and the number sent.
LOST = re.compile(r"^# (up|down): (\d+) of (\d+) packets lost without load", re.MULTILINE)
LONG = Network("long", min_rtt_ms=20, up_mbps=5, down_mbps=50, queue_ms=100)
COUNTED = Network(
    "counted",
    min_rtt_ms=40,
    up_mbps=5,
    down_mbps=8,
    up_queue=Queue("droptail", limit_packets=50),
    down_queue=Queue("droptail", limit_packets=40),
)


@pytest.mark.parametrize("name", ["dsl", "lte", "da2gc", "mss", "cable", LONG.name])
def test_the_profile_of_an_emulated_network_is_that_network(name: str, tmp_path: Path) -> None:
    network = LONG if name == LONG.name else NETWORKS[name]
    with network_namespace():
        profile = probed(network, tmp_path)
    assert profile.min_rtt_ms == pytest.approx(network.min_rtt_ms, rel=0.05)
    for direction in (UP, DOWN):
        mbps, queue, seen = network.rate_of(direction), network.queue_of(direction), profile.queue_of(direction)
        assert mbps and queue and seen
        assert profile.rate_of(direction) == pytest.approx(mbps, rel=0.05)
        expected_ms = queue.longest_wait_ms(mbps, network.min_rtt_ms)
        assert seen.limit_ms == pytest.approx(expected_ms, rel=0.05)
    lost = LOST.findall((tmp_path / networks.FILENAME).read_text())
    assert [direction for direction, *_ in lost] == [UP, DOWN]
    for direction, count, sent in lost:
        least, most = stats.binom.interval(0.9999, int(sent), network.loss_of(direction))
        assert least <= int(count) <= most


def test_a_queue_in_packets_is_written_so(tmp_path: Path) -> None:
    with network_namespace():
        profile = probed(COUNTED, tmp_path)
    for direction in (UP, DOWN):
        seen, expected = profile.queue_of(direction), COUNTED.queue_of(direction)
        assert seen and expected and expected.limit_packets
        assert seen.limit_packets == pytest.approx(expected.limit_packets, rel=0.05)
