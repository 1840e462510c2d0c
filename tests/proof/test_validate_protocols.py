"""A protocol that is not as configured fails its check, in real loads; other cases are in test_validate.py."""

from dataclasses import replace

import pytest
from support.observations import Observations

from measure.validate.protocol.settings import judge_protocol
from measure.validate.site import write_validation_sites
from tuning import protocols

pytestmark = [pytest.mark.needs_namespaces, pytest.mark.needs_browser]

PROTOCOLS = protocols.load()
# The setting of a server with shorter TLS records.
RECORDS: dict[str, object] = {"tls_record_bytes": 4096}


@pytest.fixture(scope="module")
def observations(tmp_path_factory: pytest.TempPathFactory) -> Observations:
    return Observations(write_validation_sites(tmp_path_factory.mktemp("sites")))


@pytest.mark.parametrize(
    ("claimed", "applied", "wrong"),
    [
        pytest.param("tcp+tfo", {"fast_open": False}, {"data in the SYN"}, id="no TFO"),
        pytest.param("tcp+tfo", {}, set(), id="TFO"),
        pytest.param(
            "tcp+",
            {"tls_group": "P-256"},
            {"key exchange group", "round trips before the first request"},
            id="TLS group",
        ),
        pytest.param(
            "tcp+0rtt",
            {"early_data": False},
            {"servers that took early data", "round trips before the first request"},
            id="no early data",
        ),
        pytest.param("tcp+mss1238", RECORDS, set(), id="short segments and records"),
        pytest.param("tcp+", {"mss_bytes": 1238}, {"maximum segment size", "initial window"}, id="segments too short"),
        pytest.param(
            "tcp",
            {"server_sysctls": {"net.ipv4.tcp_slow_start_after_idle": "0"}},
            {"window after a pause"},
            id="idle restart",
        ),
    ],
)
def test_a_protocol_that_is_not_as_configured_fails_its_check(
    claimed: str, applied: dict[str, object], wrong: set[str], observations: Observations
) -> None:
    protocol = PROTOCOLS[claimed]
    assert observations.failures(protocol, replace(protocol, **applied)) == wrong  # type: ignore[arg-type]


@pytest.mark.parametrize(("claimed_bytes", "passed"), [(4096, True), (4097, False), (16384, False)])
def test_the_length_of_tls_records_is_what_it_is_set_to(
    claimed_bytes: int, passed: bool, observations: Observations
) -> None:
    applied = replace(PROTOCOLS["tcp+mss1238"], **RECORDS)  # type: ignore[arg-type]
    checks = judge_protocol(replace(applied, tls_record_bytes=claimed_bytes), observations.of(applied))
    assert [check.passed for check in checks if check.name.startswith("longest TLS record")] == [passed]
