"""Networks as validation measures them: each passes with its own settings, and fails with those of another network.

A quick probe of a path finds its network, too. Slow cases are in tests/proof.
"""

import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from support.networks import failures
from support.paths import probed
from support.shells import network_namespace

from measure.probe.measurement import NetworkMeasurement
from measure.validate.network.cross_traffic import FlowMeasurement, judge_cross_traffic, measure_cross_traffic
from measure.validate.network.path import LOST_PACKETS_QUICK, judge_network, measure_network
from measure.validate.site import WINDOW_PAGE, write_validation_sites
from tuning import networks
from tuning.impairments.loss import GilbertElliott
from tuning.networks import Network
from tuning.queues import Queue

pytestmark = [pytest.mark.needs_namespaces, pytest.mark.timing]

NETWORK = Network("n", min_rtt_ms=20, up_mbps=4, down_mbps=16, queue_ms=60, loss=0.1)
# This network differs from NETWORK in each setting that has a check.
OTHER = Network("o", min_rtt_ms=24, up_mbps=3.88, down_mbps=16, queue_ms=40)
RTTS, RATE = {"minimum RTT", "median RTT"}, {"uplink rate"}
QUEUES, LOSSES = ({f"{way} {what}" for way in ("uplink", "downlink")} for what in ("queue", "loss"))
# As many bytes in the queues as NETWORK has.
SAME_QUEUES = {
    "queue_ms": None,
    "up_queue": Queue("droptail", limit_bytes=30_000),
    "down_queue": Queue("droptail", limit_bytes=120_000),
}
# Lower and higher settings than those of NETWORK, and the checks that fail when these are configured.
CHANGES: tuple[tuple[dict[str, Any], set[str]], ...] = (
    ({"min_rtt_ms": 16}, RTTS),
    ({"min_rtt_ms": 24}, RTTS),
    ({"up_mbps": 3.88}, RATE),
    ({"up_mbps": 4.14, **SAME_QUEUES}, RATE),
    ({"queue_ms": 40}, QUEUES),
    ({"queue_ms": 80}, QUEUES),
    ({"loss": 0}, LOSSES),
    ({"loss": 0.2}, LOSSES),
)
# Without a link, it is quick to measure.
REPAIRED = Network("r", min_rtt_ms=20, loss=0.19, retransmit_ms=15, drop_down_packets=(150, 200))
BURSTY = Network("b", 20, up_loss=0.05, down_loss=0.05, burst_packets=5, up_delay_ms=15)
# With this much jitter, the machine's own delays matter little.
SHAKEN = Network("s", min_rtt_ms=20, jitter_ms=8, reorder=True)
GILBERT_ELLIOTT = GilbertElliott(good_to_bad=0.02, bad_to_good=0.2, loss_in_bad=0.5, loss_in_good=0.01)
SHARE = 1 - (1 - GILBERT_ELLIOTT.loss) ** 2
ELLIOTT = Network("e", min_rtt_ms=40, loss=SHARE, gilbert_elliott=GILBERT_ELLIOTT, jitter_ms=10)
BUSY = Network("busy", min_rtt_ms=20, up_mbps=5, down_mbps=20, queue_ms=40, cross_traffic=("cubic", "reno"))
NAMES = ((1, "cubic"), (2, "reno"))
LTE = networks.load()["lte"]
# Generated.
DELAYS = "time_s,delay_ms,loss\n0,0,0\n0.4,20,0.2\n0.9,5,0\n1.6,40,0.05\n2,0,0\n"
CHANGING = """
[mine]
min_rtt_ms = 20
queue_ms = 100
up_mbps = 10
down_mbps = 10
up_conditions = "delays.csv"
"""


class Measurements:
    """Measurements of networks. They run at once, since each mostly waits, and has namespaces of its own. One whose
    test failed is repeated alone."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._site = write_validation_sites(folder / "sites")[WINDOW_PAGE]
        (folder / "delays.csv").write_text(DELAYS)
        (folder / networks.FILENAME).write_text(CHANGING)
        self.changing = networks.load(folder / networks.FILENAME)["mine"]
        self._lost_packets = {
            self.changing: LOST_PACKETS_QUICK,
            BURSTY: 1000,
            REPAIRED: 70,
            NETWORK: LOST_PACKETS_QUICK,
        }
        # While the scatter of delays is measured, only these two run, which send little; others would increase it.
        scattered = {ELLIOTT: 400, SHAKEN: LOST_PACKETS_QUICK}
        steady, self._lost_packets = self._lost_packets, self._lost_packets | scattered
        with ThreadPoolExecutor(2 + len(steady)) as pool:
            self._profiles = [pool.submit(self._probed)]
            self._flows = [pool.submit(measure_cross_traffic, BUSY, self._site)]
            self._networks = {network: [pool.submit(self._measured, network)] for network in steady}
        with ThreadPoolExecutor(len(scattered)) as pool:
            self._networks |= {network: [pool.submit(self._measured, network)] for network in scattered}

    def _measured(self, network: Network) -> NetworkMeasurement:
        return measure_network(network, self._site, self._lost_packets[network])

    def _probed(self) -> Network:
        with network_namespace():  # only this thread enters it
            return probed(LTE, Path(tempfile.mkdtemp(dir=self._folder)), "--quick")

    def of(self, network: Network) -> NetworkMeasurement:
        """A measurement of `network` for which all checks pass."""
        at_once = self._networks.get(network)
        measurement = at_once.pop().result() if at_once else self._measured(network)
        checks = judge_network(network, measurement)
        assert failures(checks) == set(), [asdict(check) for check in checks if not check.passed]
        return measurement

    def of_flows(self) -> list[FlowMeasurement]:
        """Measurements of the background flows of the busy network for which all checks pass."""
        flows = self._flows.pop().result() if self._flows else measure_cross_traffic(BUSY, self._site)
        assert failures(judge_cross_traffic(BUSY, flows)) == set(), flows
        return flows

    def profile(self) -> Network:
        """The network that a quick probe of LTE's path finds."""
        return self._profiles.pop().result() if self._profiles else self._probed()


@pytest.fixture(scope="module")
def measurements(tmp_path_factory: pytest.TempPathFactory) -> Measurements:
    return Measurements(tmp_path_factory.mktemp("measured"))


def test_a_network_that_is_not_as_configured_fails_its_check(measurements: Measurements) -> None:
    measurement = measurements.of(NETWORK)
    for change, wrong in CHANGES:
        assert failures(judge_network(replace(NETWORK, **change), measurement)) == wrong, change
    assert failures(judge_network(OTHER, measurement)) == RTTS | RATE | QUEUES | LOSSES


def test_a_network_that_repairs_its_losses_and_drops_chosen_packets_is_seen_to(measurements: Measurements) -> None:
    measurement = measurements.of(REPAIRED)
    checks = judge_network(REPAIRED, measurement)
    assert {check.name for check in checks if not check.checked} == {"median RTT"}
    for change, wrong in (
        ({"loss": 0.05}, {"uplink packets repeated", "downlink packets repeated"}),
        ({"retransmit_ms": 24}, {"uplink delay", "downlink delay"}),
        ({"drop_down_packets": (150, 201)}, {"downlink packets dropped"}),
        ({"drop_down_packets": None}, {"downlink loss"}),
    ):
        assert failures(judge_network(replace(REPAIRED, **change), measurement)) == wrong, change
    # The same losses without repair.
    unrepaired = failures(judge_network(replace(REPAIRED, retransmit_ms=None), measurement))
    assert {"uplink loss", "downlink loss"} <= unrepaired


BEHIND = {"uplink loss behind a lost packet", "downlink loss behind a lost packet"}


def test_losses_that_come_otherwise_fail(measurements: Measurements) -> None:
    measurement = measurements.of(BURSTY)
    # Shorter bursts make the number of lost packets scatter less. So the number that was measured with long bursts may
    # be too high or too low for a network with shorter ones; then the checks of the loss fail, too.
    shorter = failures(judge_network(replace(BURSTY, burst_packets=2.5), measurement))
    assert shorter - {"uplink loss", "downlink loss"} == BEHIND
    for change, wrong in (
        ({"up_loss": 0.1}, {"uplink loss"}),
        ({"up_delay_ms": 10}, {"uplink delay", "downlink delay"}),
    ):
        assert failures(judge_network(replace(BURSTY, **change), measurement)) == wrong, change
    alone = replace(BURSTY, burst_packets=None)
    assert failures(judge_network(alone, measurement)) >= BEHIND


def test_delays_that_are_shared_otherwise_fail(measurements: Measurements) -> None:
    measurement = measurements.of(ELLIOTT)
    sooner_good = replace(ELLIOTT, gilbert_elliott=replace(GILBERT_ELLIOTT, bad_to_good=0.9))
    assert failures(judge_network(sooner_good, measurement)) >= BEHIND
    assert failures(judge_network(replace(ELLIOTT, jitter_ms=16), measurement)) == {"standard deviation"}
    assert failures(judge_network(replace(ELLIOTT, reorder=True), measurement)) == {"uplink order", "downlink order"}


def test_a_network_that_reorders_and_loses_nothing_fails_as_one_in_order_and_as_lossy_ones(
    measurements: Measurements,
) -> None:
    measurement = measurements.of(SHAKEN)
    assert failures(judge_network(replace(SHAKEN, reorder=False), measurement)) == {"uplink order", "downlink order"}
    assert failures(judge_network(replace(SHAKEN, up_loss=0.1), measurement)) == {"uplink loss"}
    assert failures(judge_network(replace(SHAKEN, down_loss=0.1), measurement)) == {"downlink loss"}


def test_a_network_that_follows_a_file_passes_and_fails_as_another(measurements: Measurements) -> None:
    network = measurements.changing
    measurement = measurements.of(network)
    seen = measurement.up.conditions
    assert seen and seen.off_ms < 1 and measurement.down.conditions is None
    longer = replace(seen, off_ms=2, expected_delay_ms=seen.delay_ms + 2)
    assert failures(judge_network(network, replace(measurement, up=replace(measurement.up, conditions=longer)))) == {
        "uplink delay over time, median deviation",
        "uplink delay over time, mean",
    }
    lossier = replace(seen, expected_loss=seen.expected_loss + 0.1)
    judged = judge_network(network, replace(measurement, up=replace(measurement.up, conditions=lossier)))
    assert failures(judged) == {"uplink loss"}
    # Nothing is lost on the way down.
    assert failures(judge_network(replace(network, down_loss=0.1), measurement)) == {"downlink loss"}


def test_flows_fill_the_link_and_are_told_from_others(measurements: Measurements) -> None:
    flows = measurements.of_flows()
    assert [flow.congestion_control for flow in flows] == ["cubic", "reno"]
    assert all(flow.mbps > 1 for flow in flows)
    # The flows do not pass as another network's.
    for change, wrong in (
        ({"cross_traffic": ("reno", "reno")}, {"cross traffic 1 (reno down), congestion control"}),
        ({"down_mbps": 16}, {"cross traffic, all down"}),
        ({"down_mbps": 30}, {"cross traffic, all down"}),
        ({"min_rtt_ms": 40}, {f"cross traffic {number} ({name} down), least round trip" for number, name in NAMES}),
    ):
        judged = judge_cross_traffic(replace(BUSY, **change), flows)
        assert {check.name for check in judged if not check.passed} == wrong, change


def test_the_profile_of_an_emulated_lte_is_lte(measurements: Measurements) -> None:
    profile = measurements.profile()
    assert (profile.up_mbps, profile.down_mbps) == pytest.approx((LTE.up_mbps, LTE.down_mbps), rel=0.05)
    assert profile.min_rtt_ms == pytest.approx(LTE.min_rtt_ms, rel=0.05)
    assert (profile.up_loss, profile.down_loss) == (0, 0)
    for queue in (profile.up_queue, profile.down_queue):
        assert queue and queue.kind == "droptail"
        assert queue.limit_ms == pytest.approx(LTE.queue_ms, rel=0.05)
