"""Validation of managed queues, of networks that are off at times, and of links that retransmit.

Each passes with its own settings, and fails with others.
"""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from support.networks import failures, measured

from base.structure import from_json, to_json
from measure.probe.measurement import NetworkMeasurement
from measure.validate.network.path import judge_network
from measure.validate.site import write_validation_sites
from record.site import Site
from tuning.impairments.on_off import OnOff
from tuning.networks import Network
from tuning.queues import Queue

# A network whose directions get a different queue each; it has no loss, and nothing else takes long to measure.
LINK = Network("q", min_rtt_ms=20, up_mbps=8, down_mbps=8)
CODEL, PIE, FQ = Queue("codel"), Queue("pie"), Queue("fq_codel")
MARKING, HEAD = Queue("codel", ecn=True), Queue("drophead", limit_ms=100)
INFINITE, PACKETS = Queue("infinite"), Queue("droptail", limit_packets=40)
PIE_MARKING = Queue("pie", ecn=True)


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Site]:
    return write_validation_sites(tmp_path_factory.mktemp("sites"))


@pytest.mark.needs_namespaces
@pytest.mark.timing
@pytest.mark.parametrize(
    ("up", "down", "others"),
    [
        pytest.param(
            *(CODEL, MARKING),
            [
                {"up_queue": MARKING},
                {"down_queue": CODEL},
                {"up_queue": replace(CODEL, interval_ms=40)},
                {"up_queue": replace(CODEL, target_ms=60)},
                {"up_queue": FQ},
                {"down_queue": replace(MARKING, limit_ms=50)},
            ],
            id="codel",
        ),
        pytest.param(
            *(PIE, PIE_MARKING),
            [
                {"up_queue": PIE_MARKING},
                {"down_queue": PIE},
                {"up_queue": replace(PIE, qdelay_ref_ms=40)},
                {"up_queue": CODEL},
            ],
            id="pie",
        ),
        pytest.param(
            *(FQ, HEAD),
            [
                {"up_queue": replace(FQ, ecn=True)},
                {"down_queue": replace(HEAD, limit_ms=150)},
                {"down_queue": Queue("infinite")},
                {"down_queue": PIE},
            ],
            id="fq_codel and drophead",
        ),
        pytest.param(
            *(INFINITE, PACKETS),
            [
                {"up_queue": PACKETS},
                {"down_queue": INFINITE},
                {"down_queue": replace(PACKETS, limit_packets=60)},
                {"up_queue": CODEL},
            ],
            id="infinite and packets",
        ),
    ],
)
def test_a_queue_of_another_kind_or_with_other_arguments_fails(
    up: Queue, down: Queue, others: list[dict[str, Queue]], sites: Mapping[str, Site]
) -> None:
    network = replace(LINK, up_queue=up, down_queue=down)
    measurement = measured(network, sites)
    assert from_json(to_json(measurement), NetworkMeasurement, "it") == measurement
    for change in others:
        (key,) = change
        wrong = failures(judge_network(replace(network, **change), measurement))  # type: ignore[arg-type]
        assert wrong == {f"{key.partition('_')[0]}link queue"}, change


OFF = Network("o", min_rtt_ms=20, on_off=OnOff(0.4, 0.1, periodic=True), loss=0.02)


@pytest.mark.needs_namespaces
@pytest.mark.timing
def test_a_network_that_is_off_at_other_times_fails(sites: Mapping[str, Site]) -> None:
    measurement = measured(OFF, sites)
    off, on = {"uplink off, always", "downlink off, always"}, {"uplink on, always", "downlink on, always"}
    for change, wrong in (
        ({"on_off": OnOff(0.4, 0.11, periodic=True)}, off),
        ({"on_off": OnOff(0.5, 0.1, periodic=True)}, on),
    ):
        assert failures(judge_network(replace(OFF, **change), measurement)) == wrong, change  # type: ignore[arg-type]
    random = replace(OFF, on_off=None, down_on_off=OnOff(0.2, 0.1), loss=0)
    measurement = measured(random, sites)
    longer = replace(random, down_on_off=OnOff(0.2, 1))
    assert "downlink off, mean" in failures(judge_network(longer, measurement))


TRIES = Network("t", min_rtt_ms=20, loss=0.51, retransmit_ms=15, retransmit_tries=3, retransmit_reorder=True)


@pytest.mark.needs_namespaces
@pytest.mark.timing
@pytest.mark.parametrize("reorders", [True, False])
def test_a_link_that_tries_another_number_of_times_or_keeps_another_order_fails(
    reorders: bool, sites: Mapping[str, Site]
) -> None:
    network = replace(TRIES, retransmit_reorder=reorders)
    measurement = measured(network, sites, lost_packets=1000)
    lost = {"uplink loss", "downlink loss"}
    for change, wrong in (
        ({"retransmit_tries": 4}, lost),
        ({"retransmit_tries": None}, lost),
        ({"retransmit_reorder": not reorders}, {"uplink order", "downlink order"}),
    ):
        assert failures(judge_network(replace(network, **change), measurement)) >= wrong, change
