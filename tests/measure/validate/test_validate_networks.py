"""Validation of properties that the paper's networks lack: each kind passes with its own settings, and fails with
others.

Slow cases are in tests/proof/test_validate_queues.py.
"""

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from support.networks import failures

from dataset.checks import Check
from measure.probe.emulated import longest_repair_ms
from measure.probe.flows import Flow, lost_runs
from measure.probe.measurement import Direction, Managed, NetworkMeasurement, Outages, outages, repairs
from measure.validate.network.path import judge_network
from measure.validate.network.queue_model import expected
from tuning.impairments.on_off import OnOff
from tuning.networks import Network
from tuning.queues import Queue

# A network whose directions get a different queue each; it has no loss.
LINK = Network("q", min_rtt_ms=20, up_mbps=8, down_mbps=8)
CODEL, PIE, FQ = Queue("codel"), Queue("pie"), Queue("fq_codel")
MARKING, HEAD = Queue("codel", ecn=True), Queue("drophead", limit_ms=100)
INFINITE, PACKETS = Queue("infinite"), Queue("droptail", limit_packets=40)


def judged(network: Network, **seen: Any) -> list[Check]:
    """The checks of `network` when both directions are as `seen`, and everything else is correct."""
    way = Direction(**{"sent": 4000, "lost": 0, **seen})
    rtt_ms = network.min_rtt_ms
    return judge_network(network, NetworkMeasurement(rtt_ms, rtt_ms, rtt_ms, 100, 0, up=way, down=way))


def test_another_flow_that_waits_behind_the_first_is_no_fq_codel() -> None:
    network = replace(LINK, up_queue=FQ, down_queue=FQ)
    flow = Flow(4000, 1428, 8.8, managed=True)
    model = expected(FQ, 8, 20, flow.packets, flow.size_bytes, flow.mbps)
    seen = Managed(flow, model.dropped, model.marked, model.wait_ms, sparse_wait_ms=1)
    assert failures(judged(network, managed=seen)) == set()
    checks = judged(network, managed=replace(seen, sparse_wait_ms=12))
    assert {check.name for check in checks if not check.passed} == {
        f"{way}link queue (fq_codel), wait of another flow" for way in ("up", "down")
    }


def test_what_cannot_be_seen_is_told() -> None:
    quiet = OnOff(50, 1)
    few = Outages(count=2, off_s=1, on_s=40, least_s=0.001)
    checks = judged(replace(LINK, queue_ms=50, on_off=quiet), outages=few, mean_mbps=7.8)
    few_times = "not checked: it was off and on again only 2 times during the probe"
    at_times = "not checked: the direction is off at times"
    assert {check.name: check.measured for check in checks if not check.checked} == {
        f"{way}link {what}": why
        for way in ("up", "down")
        for what, why in (("off", few_times), ("mean rate", at_times))
    }
    hidden = judged(replace(LINK, queue_ms=50, on_off=quiet), outages=replace(few, least_s=0.6))
    assert {check.measured for check in hidden if check.name.endswith(" off")} == {
        "not checked: it cannot be distinguished from losses"
    }
    checks = judged(replace(LINK, up_queue=CODEL, down_queue=CODEL, on_off=quiet), outages=few)
    assert {check.name for check in checks if not check.checked} >= {"uplink queue (codel)", "downlink queue (codel)"}


def test_packets_that_are_lost_behind_each_other_are_told_from_times_off() -> None:
    random, flow = Random(1), Flow(20_000, 41, 41 * 8 / 1e3)  # one packet each ms
    off = {number for begin in range(2_300, 20_000, 2_500) for number in range(begin, begin + 200)}
    lost = {number for number in range(flow.packets) if number in off or random.random() < 0.05}
    arrived = {number: (number * 10**6, number * 10**6) for number in range(flow.packets) if number not in lost}
    runs = list(lost_runs(flow.packets, arrived))
    assert {number for run in runs for number in run} == lost
    seen = outages(arrived, [run for run in runs if len(run) >= 7], flow, 7, OnOff(2.3, 0.2))
    # The last outage did not end before the flow did, so it is not counted.
    assert seen.count == 6
    assert seen.off_s == pytest.approx(0.2, abs=0.002)
    assert seen.on_s == pytest.approx(2.3, abs=0.002)


def test_what_a_link_repeats_is_waited_for_before_it_counts_as_lost() -> None:
    network = Network("x", min_rtt_ms=20, up_loss=0.1, retransmit_ms=200)
    assert longest_repair_ms(network, "up") == 9 * 200
    assert longest_repair_ms(replace(network, retransmit_tries=3), "up") == 3 * 200
    assert longest_repair_ms(network, "down") == longest_repair_ms(LINK, "up") == 0


@pytest.mark.parametrize("waits", [True, False])
def test_repairs_that_end_after_some_tries_are_told_without_bias(waits: bool) -> None:
    random, probability, cost_ms, tries = Random(1), 0.2, 20.0, 3
    arrived, settled_ns = {}, 0
    for number in range(50_000):
        sent_ns = number * 4_000_000
        failed = next((count for count in range(tries) if random.random() >= probability), tries)
        at_ns = sent_ns + round(failed * cost_ms * 1e6)
        settled_ns = max(settled_ns, at_ns) if waits else at_ns
        if failed < tries:
            arrived[number] = (sent_ns, settled_ns + 10_000_000)
    if not waits:
        arrived = dict(sorted(arrived.items(), key=lambda entry: entry[1][1]))
    seen = repairs(arrived, cost_ms, waits=waits)
    lasting = probability**tries
    assert seen.late / seen.free == pytest.approx((probability - lasting) / (1 - lasting), abs=0.01)
    assert seen.repeat_ms == pytest.approx(cost_ms)


@pytest.mark.parametrize(
    ("queue", "dropped", "wait_ms"),
    [
        # The flow sends 1.1 times what the link carries. The surplus is dropped, except for the content of the queue at
        # the end, which is still sent.
        (PACKETS, 1 - 1 / 1.1 - 40 / 4000, 40 * 1.428),
        (HEAD, 1 - 1 / 1.1 - 70 / 4000, 70 * 1.428 / 1.1),
        (INFINITE, 0, 0.75 * 4000 * 1.428 * 0.1 / 1.1),
    ],
    ids=["droptail", "drophead", "infinite"],
)
def test_models_of_simple_queues_are_as_one_reckons(queue: Queue, dropped: float, wait_ms: float) -> None:
    seen = expected(queue, 8, 20, 4000, 1428, 8.8)
    assert seen.dropped == pytest.approx(dropped, abs=0.001)
    assert seen.wait_ms == pytest.approx(wait_ms, rel=0.03)
    assert seen.marked == 0


def test_codels_model_drops_as_its_control_law_says() -> None:
    """The n-th drop is about 2 √n intervals after the first (RFC 8289, 5.3), while the queue stays long."""
    far_too_much = expected(CODEL, 8, 20, packets := 4000, 1428, 80)
    seconds = packets * (1 - far_too_much.dropped) * 1428 * 8 / 8e6
    assert far_too_much.dropped * packets == pytest.approx(((seconds - 0.1) / 0.2) ** 2, rel=0.1)
    marked = expected(MARKING, 8, 20, 4000, 1428, 8.8)
    assert (marked.dropped, marked.wait_ms) == (0, expected(INFINITE, 8, 20, 4000, 1428, 8.8).wait_ms)


def test_pies_model_holds_its_reference_and_lets_a_burst_pass() -> None:
    for reference_ms in (15, 30, 60):
        seen = expected(replace(PIE, qdelay_ref_ms=reference_ms), 8, 20, 12_000, 1428, 8.8)
        assert seen.wait_ms == pytest.approx(reference_ms, rel=0.3)
    # A burst of 150 ms has 77 packets.
    assert expected(PIE, 8, 20, 70, 1428, 8.8).dropped == 0
