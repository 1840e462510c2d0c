"""Every scheduler over QUIC, and NGINX with and without the kernel's limit: each serves in its order, three times."""

from collections.abc import Mapping
from dataclasses import replace
from statistics import fmean

import pytest

from measure.validate.protocol.order_of_service import ORDERS, OrderOfService, judge_order, observe_order
from measure.validate.site import ORDERED, write_validation_sites
from record.site import Site
from tuning import protocols
from tuning.protocols import Protocol

pytestmark = [pytest.mark.needs_namespaces, pytest.mark.loads(group="order", lanes=2)]

PROTOCOLS = protocols.load()
TIMES = 3
PARTS = 100
# The largest allowed distance of the level pair's scheduler from NGINX. Loads of one server also differ, since their
# requests arrive in varying order, but by less than this.
NEAR = 0.06


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Site]:
    return write_validation_sites(tmp_path_factory.mktemp("sites"))


def protocol_named(name: str) -> Protocol:
    return replace(PROTOCOLS["quic"], name=name, scheduler=name) if name in ORDERS else PROTOCOLS[name]


def places(order: OrderOfService) -> dict[str, list[float]]:
    """For each path, the time at which each hundredth of its response was sent. The time is the share of all bytes that
    had been sent by then."""
    parts: dict[str, list[tuple[int, int]]] = {path: [] for path in ORDERED}
    total = 0
    for part in order.served:
        if part.path in parts:
            parts[part.path].append((total, part.bytes))
        total += part.bytes
    result = {}
    for path, of_path in parts.items():
        bytes_in_order = [at + n for at, size in of_path for n in range(size)]
        result[path] = [bytes_in_order[len(bytes_in_order) * n // PARTS] / total for n in range(PARTS)]
    return result


def distance(one: OrderOfService, other: OrderOfService) -> float:
    """The mean shift of a byte between the two orders, as a share of all bytes."""
    first, second = places(one), places(other)
    differences = [abs(a - b) for path in ORDERED for a, b in zip(first[path], second[path], strict=True)]
    return sum(differences) / len(differences)


@pytest.mark.parametrize("name", [*ORDERS, "tcp", "tcp+", "tcp+lowat", "quic", "quic+1con"])
def test_each_server_sends_in_its_order_every_time(name: str, sites: Mapping[str, Site]) -> None:
    protocol = protocol_named(name)
    for _ in range(TIMES):
        numbers = observe_order(protocol, sites).numbers
        checks = judge_order(protocol, numbers)
        assert [check for check in checks if not check.passed] == []
        if name in ORDERS:
            for another in set(ORDERS) - {name}:
                assert not all(check.passed for check in judge_order(protocol_named(another), numbers)), another


def test_what_waits_in_the_kernel_is_seen(sites: Mapping[str, Site]) -> None:
    checks = judge_order(PROTOCOLS["tcp+lowat"], observe_order(PROTOCOLS["tcp+"], sites).numbers)
    wrong = {check.name for check in checks if not check.passed}
    assert wrong == {"bytes sent against priority", "bytes in front of an urgent response"}


def test_no_scheduler_is_nearer_to_nginx_than_that_of_the_level_pair(sites: Mapping[str, Site]) -> None:
    nginx = [observe_order(PROTOCOLS["tcp+lowat"], sites) for _ in range(TIMES)]
    distances = {
        name: fmean(distance(order, observe_order(protocol_named(name), sites)) for order in nginx) for name in ORDERS
    }
    level = PROTOCOLS["quic+1con"].scheduler
    assert level
    assert distances[level] < NEAR, distances
    assert min(distances, key=lambda name: distances[name]) == level, distances
