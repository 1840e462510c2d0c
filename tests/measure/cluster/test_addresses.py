"""A cluster is reached over TLS; unencrypted only within one machine, or on request."""

from pathlib import Path

import pytest
from click.testing import CliRunner

from base.errors import EyelevelError
from eyelevel.program import program
from measure.cluster.addresses import scheduler_address, security_of
from measure.cluster.keys import Role


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("tls://10.0.0.1:8786", "tls://10.0.0.1:8786"),
        ("10.0.0.1", "tls://10.0.0.1:8786"),
        ("head:9000", "tls://head:9000"),
        ("127.0.0.1:0", "tls://127.0.0.1:0"),
        ("tls://[fd00::1]", "tls://[fd00::1]:8786"),
    ],
)
def test_tls_is_what_an_address_means(text: str, address: str) -> None:
    assert scheduler_address(text) == address


# All users of a machine can reach its loopback, and everyone who reaches a scheduler can run programs as its user.
@pytest.mark.parametrize("host", ["10.0.0.1", "0.0.0.0", "head", "[fd00::1]", "127.0.0.1", "localhost", "[::1]"])
def test_unencrypted_is_refused_unless_asked_for(host: str) -> None:
    message = r"is not encrypted: .+ use tls://.+ after 'make cluster-keys', or give --insecure"
    with pytest.raises(EyelevelError, match=message):
        scheduler_address(f"tcp://{host}:8786")
    assert scheduler_address(f"tcp://{host}:8786", insecure=True) == f"tcp://{host}:8786"


@pytest.mark.parametrize(
    "text",
    ["", "ucx://10.0.0.1", "inproc://a", "tls://", "tls://a:b", "tls://a:99999", "tls://me@a", "tls://a/b", "tls://[a"],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(EyelevelError, match="is not a scheduler's address, which is like tls://"):
        scheduler_address(text)


@pytest.mark.parametrize(
    "command",
    [
        ["scheduler", "tcp://10.0.0.1:8786"],
        ["worker", "tcp://10.0.0.1:8786"],
        ["campaign", "--dask", "tcp://10.0.0.1:8786", "--sites", "demo-light"],
        ["states", "--dask", "tcp://10.0.0.1:8786"],
    ],
)
def test_every_command_refuses_it(command: list[str], tmp_path: Path) -> None:
    if command[0] not in ("scheduler", "worker"):
        command = [*command, "--results", str(tmp_path)]
    outcome = CliRunner().invoke(program, command)
    assert isinstance(outcome.exception, EyelevelError), outcome.output
    assert "tcp://10.0.0.1:8786 is not encrypted" in str(outcome.exception)
    assert list(tmp_path.iterdir()) == []


def test_without_keys_nothing_is_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EYELEVEL_CACHE", str(tmp_path))
    with pytest.raises(EyelevelError, match="is missing; 'make cluster-keys' makes the keys"):
        security_of(Role.HEAD, "tls://10.0.0.1:8786")
    assert security_of(Role.HEAD, "tcp://127.0.0.1:8786") is None
