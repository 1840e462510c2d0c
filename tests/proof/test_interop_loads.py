"""The matrix of servers and browsers, from real loads that take long: it passes correct behaviour, and fails the
rest."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from browsers.registry import all_browsers
from measure.interop.matrix import FAILED, PASSED, Case, cases, result
from measure.interop.site import Page
from measure.interop.tests import MANY, TESTS
from servers.registry import all_servers
from tuning.protocols import TRANSPORTS

pytestmark = [pytest.mark.needs_namespaces, pytest.mark.needs_browser]

CHROMIUM = all_browsers()["chromium"]
BY_NAME = {test.name: test for test in TESTS}
SMALL = Page("small", (0, 5), servers=2)
# MANY with objects of one byte: the page sends as many requests, but each response ends before the next request.
BRIEF = replace(MANY, sizes_bytes=(1,) * len(MANY.sizes_bytes))


def loads_of(name: str) -> Iterator[Case]:
    """The cases of the servers that every installation has, over the versions of HTTP that each speaks."""
    servers = [all_servers()[server] for server in ("nginx", "quic_server")]
    for case in cases(servers, [CHROMIUM], [BY_NAME[name]]):
        if case.http_version in {TRANSPORTS[transport].http_version for transport in case.server.transports}:
            yield case


@pytest.mark.parametrize("name", ["h2", "h3", "many streams", "0-RTT", "loss"])
def test_what_everybody_has_passes_and_leaves_nothing(name: str, tmp_path: Path) -> None:
    site = BY_NAME[name].page.write(tmp_path / "site")
    for case in loads_of(name):
        outcome = result(case, site, tmp_path / "results", 1)
        assert (outcome.outcome, outcome.why, outcome.loads) == (PASSED, "", 1)
        assert list((tmp_path / "results" / case.name).iterdir()) == []


@pytest.mark.parametrize(
    ("name", "broken", "why"),
    [
        ("0-RTT", replace(BY_NAME["0-RTT"], early_data=False), "early data was not accepted by"),
        ("many streams", replace(BY_NAME["many streams"], page=BRIEF), "open at once, not 99"),
        ("loss", replace(BY_NAME["loss"], page=SMALL), "so that none was lost on purpose"),
    ],
)
def test_a_test_whose_load_is_another_fails(name: str, broken: object, why: str, tmp_path: Path) -> None:
    assert isinstance(broken, type(BY_NAME[name]))
    site = broken.page.write(tmp_path / "site")
    for case in loads_of(name):
        outcome = result(replace(case, test=broken), site, tmp_path / "results", 1)
        assert outcome.outcome == FAILED and why in outcome.why, outcome.why
