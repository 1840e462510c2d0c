"""The answer to one loss, from real loads: each protocol passes as itself, and fails as another."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest

from base.errors import EyelevelError
from measure.validate.protocol.loss_response import (
    DROPPED_PACKET,
    KEPT,
    ONE_LOSS,
    REGROWTH,
    LossResponse,
    judge_loss_response,
    observe_loss_response,
)
from measure.validate.site import write_validation_sites
from record.site import Site
from tuning import protocols

pytestmark = [pytest.mark.needs_namespaces, pytest.mark.needs_browser]

PROTOCOLS = protocols.load()


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Site]:
    return write_validation_sites(tmp_path_factory.mktemp("sites"))


@pytest.fixture(scope="module")
def response_of(sites: Mapping[str, Site]) -> Callable[[str], LossResponse]:
    known: dict[str, LossResponse] = {}

    def observe(name: str) -> LossResponse:
        if name not in known:
            known[name] = observe_loss_response(PROTOCOLS[name], sites)
        return known[name]

    return observe


@pytest.mark.parametrize(
    ("applied", "claimed", "wrong"),
    [
        *((name, name, set()) for name in ("tcp", "tcp+", "tcp+lowat", "tcp+bbr")),
        *((name, name, set()) for name in ("quic", "quic+1con", "quic+bbr", "quic+bbr2", "quic+0rtt")),
        ("quic", "quic+1con", {KEPT, REGROWTH}),
        ("quic+1con", "quic", {KEPT, REGROWTH}),
        ("quic+1con", "quic+bbr", {KEPT}),
        ("tcp+bbr", "tcp+", {KEPT, REGROWTH}),
        ("tcp+", "tcp+bbr", {KEPT}),
    ],
)
def test_an_answer_to_one_loss_passes_as_what_it_is_only(
    applied: str, claimed: str, wrong: set[str], response_of: Callable[[str], LossResponse]
) -> None:
    seen = response_of(applied)
    assert {check.name for check in judge_loss_response(PROTOCOLS[claimed], seen) if not check.passed} == wrong, seen


@pytest.mark.parametrize("name", ["tcp", "tcp+", "quic", "quic+1con"])
def test_what_the_server_says_of_its_window_is_what_it_sends(
    name: str, response_of: Callable[[str], LossResponse]
) -> None:
    seen = response_of(name)
    assert np.nanmedian(np.abs(seen.window - seen.account)[seen.at_s > 0]) < 0.02 * seen.before


@pytest.mark.parametrize("name", ["tcp+", "quic"])
@pytest.mark.parametrize(("further", "message"), [((), "no packet"), ((DROPPED_PACKET + 50,), "2 packets")])
def test_other_than_one_loss_is_no_measurement(
    name: str, further: tuple[int, ...], message: str, sites: Mapping[str, Site]
) -> None:
    dropped = (DROPPED_PACKET, *further) if further else None
    with pytest.raises(EyelevelError, match=message):
        observe_loss_response(PROTOCOLS[name], sites, replace(ONE_LOSS, drop_down_packets=dropped), tries=1)
