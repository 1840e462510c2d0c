"""Validation passes correct settings, and each check fails when its setting is deliberately broken."""

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from support.observations import Observations

from dataset.checks import Check, between, outcomes_in_words, same, unchecked, within
from measure.probe.measurement import Direction, NetworkMeasurement, Repairs, repairs
from measure.validate.network.path import judge_network
from measure.validate.site import write_validation_sites
from record.site import Site
from tuning import protocols
from tuning.networks import Network

PROTOCOLS = protocols.load()


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Site]:
    return write_validation_sites(tmp_path_factory.mktemp("sites"))


def test_checks_are_counted_with_those_that_do_not_apply() -> None:
    one, wrong = same("dsl", "rate", 1, 1), same("dsl", "loss", 1, 2)
    left_out = [unchecked("dsl", name, "the link is off at times") for name in ("delay", "queue")]

    def words(*checks: Check) -> str:
        return outcomes_in_words((check.measured, check.passed) for check in checks)

    assert words(one, one) == "2 checks passed"
    assert words(one, *left_out) == "1 check passed, 2 do not apply here (the link is off at times)"
    assert words(one, wrong, left_out[0]) == (
        "1 check passed, 1 failed, 1 does not apply here (the link is off at times)"
    )
    # A reason may follow what was seen.
    seen = [unchecked("tcp", "bytes in front", f"{share}% (the order is settled)") for share in (43, 66)]
    assert words(one, *seen) == "1 check passed, 2 do not apply here (the order is settled)"


def failed(checks: Iterable[Check]) -> dict[str, Check]:
    """The `checks` that fail, by name."""
    return {check.name.partition(" of ")[0]: check for check in checks if not check.passed}


def judged(network: Network, **seen: object) -> list[Check]:
    """The checks of `network` when both directions are as `seen`, and everything else is correct."""
    way = Direction(**{"sent": 4000, "lost": 0, **seen})  # type: ignore[arg-type]
    rtt_ms = network.min_rtt_ms
    return judge_network(network, NetworkMeasurement(rtt_ms, rtt_ms, rtt_ms, 100, 0, up=way, down=way))


def test_packets_that_overtake_each_other_on_a_link_that_keeps_the_order_fail() -> None:
    network = Network("n", min_rtt_ms=20, loss=0.19, retransmit_ms=20)
    seen = Repairs(free=1000, late=100, repeat_ms=20)
    assert failed(judged(network, repairs=seen)) == {}
    assert set(failed(judged(network, repairs=seen, in_order=False))) == {"uplink order", "downlink order"}
    reordering = replace(network, retransmit_reorder=True)
    assert failed(judged(reordering, repairs=seen, in_order=False)) == {}
    assert set(failed(judged(reordering, repairs=seen))) == {"uplink order", "downlink order"}


def test_a_chosen_packet_that_is_not_lost_fails() -> None:
    network = Network("n", min_rtt_ms=20, drop_up_packets=(101, 5000))
    checks = judged(network, lost=1, lost_numbers=(0,))
    assert set(failed(checks)) == {"downlink loss"}
    assert set(failed(judged(network))) == {"uplink packets dropped"}


@pytest.mark.parametrize(
    ("changes", "unknown"),
    [
        ({"drop_up_packets": (100,)}, "uplink packets dropped"),
        ({"drop_up_at_ms": (5,)}, "uplink packets dropped by time"),
        ({"drop_down_packets": (300,), "drop_up_packets": (3,)}, "downlink packets dropped"),
        ({"drop_up_packets": (200,), "loss": 0.1}, "uplink packets dropped"),
    ],
)
def test_chosen_packets_that_the_probe_cannot_know_are_named(changes: dict[str, object], unknown: str) -> None:
    checks = judged(replace(Network("n", min_rtt_ms=20), **changes))  # type: ignore[arg-type]
    assert unknown in [check.name for check in checks if not check.checked]


def test_repairs_are_told_from_arrivals_without_bias() -> None:
    random, probability, cost_ms, numbers = Random(1), 0.1, 20.0, range(100_000)
    arrived, latest_ns = {}, 0
    for number in numbers:
        sent_ns = number * 2_000_000
        tries = next(tries for tries in itertools.count() if random.random() >= probability)
        latest_ns = max(latest_ns, sent_ns + round(tries * cost_ms * 1e6))
        arrived[number] = (sent_ns, latest_ns + 10_000_000)
    seen = repairs(arrived, cost_ms, waits=True)
    assert seen.late / seen.free == pytest.approx(probability, abs=3.3 * math.sqrt(0.09 / seen.free))
    assert seen.repeat_ms == cost_ms


@pytest.fixture(scope="module")
def observations(sites: Mapping[str, Site]) -> Observations:
    return Observations(sites)


# All cases of a protocol are in one lane, so that the protocol is loaded only once.
LANES = {name: pytest.mark.loads(group="validation", lane=lane) for lane, name in enumerate(("tcp+", "quic"))}
OTHER_QUIC: dict[str, object] = {"congestion_control": "bbr", "known_servers": False}


# Other cases are in tests/proof/test_validate_protocols.py.
@pytest.mark.needs_namespaces
@pytest.mark.parametrize(
    ("name", "applied", "claimed", "wrong"),
    [
        pytest.param("tcp+", {}, {}, set(), id="as configured", marks=LANES["tcp+"]),
        pytest.param(
            "tcp+", {}, {"initial_window_packets": 20}, {"initial window"}, id="initial window", marks=LANES["tcp+"]
        ),
        pytest.param(
            "tcp+", {}, {"pacing": False}, {"first flight spread over a round trip"}, id="pacing", marks=LANES["tcp+"]
        ),
        pytest.param(
            "tcp+",
            {},
            {"congestion_control": "bbr"},
            {"congestion control of the server", "share of a link with 8% loss"},
            id="congestion control",
            marks=LANES["tcp+"],
        ),
        pytest.param("quic", OTHER_QUIC, OTHER_QUIC, set(), id="BBR, unknown servers", marks=LANES["quic"]),
        pytest.param(
            "quic",
            OTHER_QUIC,
            {},
            {
                "connection options that arrived",
                "congestion control of the server",
                "share of a link with 8% loss",
                "pictures asked for at once",
            },
            id="options, unknown servers",
            marks=LANES["quic"],
        ),
    ],
)
def test_a_protocol_that_is_not_as_configured_fails_its_check(
    name: str, applied: dict[str, object], claimed: dict[str, object], wrong: set[str], observations: Observations
) -> None:
    claim, protocol = (replace(PROTOCOLS[name], **changes) for changes in (claimed, applied))  # type: ignore[arg-type]
    assert observations.failures(claim, protocol) == wrong


def test_a_rate_that_holds_between_packets_but_not_over_all_is_found() -> None:
    network = Network("n", min_rtt_ms=20, up_mbps=4, down_mbps=4, queue_ms=60)
    steady = Direction(mbps=4.0, sent=4000, lost=0, queue_bytes=30_000, mean_mbps=3.9)
    resting = replace(steady, mean_mbps=3.7)
    checks = judge_network(network, NetworkMeasurement(20, 20, 20, 100, 0.1, up=steady, down=resting))
    assert [check.name for check in checks if not check.passed] == ["downlink mean rate"]


@pytest.mark.parametrize(
    ("change", "seen", "wrong"),
    [
        ({}, {}, set()),
        ({"rtt_min_ms": 30, "rtt_median_ms": 30}, {}, {"minimum RTT"}),
        ({"rtt_median_ms": 33}, {}, {"median RTT"}),
        ({"rtt_min_ms": 17}, {}, {"minimum RTT"}),
        ({}, {"mean_mbps": 3.75}, {"uplink mean rate"}),
        ({}, {"queue_bytes": 26_000}, {"uplink queue"}),
        ({}, {"lost": 10}, {"uplink loss"}),
    ],
    ids=["right", "later", "median later", "earlier", "slower", "shorter", "loses"],
)
def test_where_a_link_sends_whole_packets_at_whole_milliseconds_all_else_is_checked(
    change: dict[str, float], seen: dict[str, float], wrong: set[str]
) -> None:
    """A packet may wait up to 3 ms for an opportunity in each direction of a round trip."""
    network = Network("n", min_rtt_ms=20, up_mbps=4, down_mbps=4, queue_ms=60)
    right = Direction(sent=4000, lost=0, queue_bytes=29_000, mean_mbps=3.95)
    measured = NetworkMeasurement(24, 26, 30, 100, 0.1, up=replace(right, **seen), down=right)  # type: ignore[arg-type]
    checks = judge_network(network, replace(measured, in_opportunities=True, **change))  # type: ignore[arg-type]
    assert set(failed(checks)) == wrong
    assert [check.name for check in checks if not check.checked] == []


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
