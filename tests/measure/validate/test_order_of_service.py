"""The order of service, determined from the sent bytes; each check fails for another order than the protocol's."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from dataset.observations import BACKGROUND, URGENT
from measure.validate.protocol.order_of_service import (
    ORDERS,
    OrderOfService,
    Response,
    Served,
    judge_order,
    observe_order,
)
from measure.validate.site import BULK_BYTES, ORDERED, ORDERED_BYTES, URGENT_BYTES, write_validation_sites
from servers.registry import server_of
from tuning import protocols
from tuning.protocols import Protocol

PROTOCOLS = protocols.load()
URGENCIES = {"prefetch": 4, "image": 3, "script": 3, "fetch": 1, "urgent": 1, "style": 0}
INCREMENTAL = ("prefetch", "image", "fetch")
TURN_BYTES, BYTES_PER_S = 16_000, 1_000_000
# When the second wave, and the urgent response, are requested.
SECOND_S, URGENT_S = 0.05, 1.5


def kind(path: str) -> str:
    return path.strip("/").partition("-")[0]


def asked() -> list[Response]:
    """The page's responses in the order in which they are requested."""
    responses = [
        Response(path, URGENCIES[kind(path)], kind(path) in INCREMENTAL, at_s, ORDERED_BYTES)
        for path in ORDERED
        for at_s in [SECOND_S if kind(path) in ("fetch", "urgent", "style") else 0.0]
    ]
    responses.append(Response(BACKGROUND, 4, False, SECOND_S, BULK_BYTES))
    return [*responses, Response(URGENT, 0, False, URGENT_S, URGENT_BYTES)]


def served_by(scheduler: str, responses: Iterable[Response]) -> Iterator[Served]:
    """The data of `responses` in the order in which a scheduler sends them, turn by turn."""
    order = ORDERS[scheduler]
    rest = {response: response.bytes for response in responses}
    turns: list[Response] = []
    now_s = 0.001
    while any(rest.values()):
        turns += [r for r in rest if r.asked_s <= now_s and r not in turns]
        waiting = [r for r in turns if rest[r]]
        if order.strictly:
            waiting = [r for r in waiting if r.urgency == min(r.urgency for r in waiting)]
        one = waiting[0]
        sent = min(TURN_BYTES, rest[one])
        rest[one] -= sent
        yield Served(now_s, one.path, sent)
        now_s += sent / BYTES_PER_S
        if order.incremental_take_turns if one.incremental else order.others_take_turns:
            turns.remove(one)
            turns.append(one)


@cache
def order_by(scheduler: str) -> OrderOfService:
    responses = asked()
    return OrderOfService(tuple(responses), tuple(served_by(scheduler, responses)))


def protocol_with(scheduler: str) -> Protocol:
    return replace(PROTOCOLS["quic"], name=scheduler, scheduler=scheduler)


def test_every_scheduler_that_a_protocol_may_name_has_an_order() -> None:
    assert set(ORDERS) == set(server_of(PROTOCOLS["quic"]).choices["scheduler"] or ())


@pytest.mark.parametrize("served", ORDERS)
@pytest.mark.parametrize("claimed", ORDERS)
def test_a_server_passes_with_its_own_order_and_with_no_other(claimed: str, served: str) -> None:
    checks = judge_order(protocol_with(claimed), order_by(served).numbers)
    assert all(check.checked for check in checks)
    assert all(check.passed for check in checks) == (claimed == served), checks


def test_what_waits_in_the_kernel_fails_where_little_may_wait_there() -> None:
    numbers = order_by("urgency-first-come").numbers
    behind = replace(numbers, in_front_bytes=548_032)
    for seen, wrong in ((numbers, []), (behind, ["bytes in front of an urgent response"])):
        checks = judge_order(PROTOCOLS["tcp+lowat"], seen)
        assert [check.name for check in checks if not check.passed] == wrong


def test_the_order_is_told_but_not_checked_where_it_is_the_kernels() -> None:
    checks = judge_order(PROTOCOLS["tcp+"], order_by("first-come").numbers)
    assert checks
    assert not any(check.checked for check in checks)


def test_numbers_are_those_of_the_bytes_that_left() -> None:
    numbers = order_by("urgency-first-come").numbers
    assert (numbers.against_priority, numbers.turns_incremental, numbers.turns_others) == (0.0, 0.0, 0.0)
    assert numbers.in_front_bytes <= TURN_BYTES
    fair = order_by("fair").numbers
    assert fair.against_priority > 0.5
    assert fair.turns_incremental is not None
    assert fair.turns_incremental > 0.8


@pytest.mark.needs_namespaces
@pytest.mark.loads(group="validation", lane=1)
def test_the_order_of_a_server_is_seen_in_a_capture(tmp_path: Path) -> None:
    order = observe_order(PROTOCOLS["quic+1con"], write_validation_sites(tmp_path))
    asked_for = {response.path: (response.urgency, response.incremental) for response in order.responses}
    assert asked_for == {response.path: (response.urgency, response.incremental) for response in asked()}
    assert [check for check in judge_order(PROTOCOLS["quic+1con"], order.numbers) if not check.passed] == []
    others = [check.name for check in judge_order(PROTOCOLS["quic"], order.numbers) if not check.passed]
    assert others == [f"turns among {what} responses" for what in ("incremental", "other")]
