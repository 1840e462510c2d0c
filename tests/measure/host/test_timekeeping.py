"""The priority with which the emulated network keeps time is known, and reported where it could be better."""

import os
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from base.namespaces import namespaced
from base.places import tool
from eyelevel.commands import validate as validate_command
from measure.host import timekeeping as host


@pytest.fixture(autouse=True)
def not_known_yet() -> None:
    host.timekeeping.cache_clear()


def has_real_time_priority(*prefix: str) -> bool:
    """Whether a process may have it, by another program than ours."""
    command = [*prefix, "chrt", "--fifo", "1", "true"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def told(tmp_path: Path, *prefix: str) -> str:
    file = tmp_path / "timekeeping"
    command = [*namespaced("net"), *prefix, tool("mm-net"), "--delay", "1", "--timekeeping", file, "--", "true"]
    subprocess.run(command, check=True)
    return file.read_text()


@pytest.mark.needs_namespaces
@pytest.mark.needs_shells
def test_mm_net_tells_what_the_kernel_grants(tmp_path: Path) -> None:
    assert ("real-time priority" in told(tmp_path)) == has_real_time_priority()


@pytest.mark.needs_namespaces
@pytest.mark.needs_shells
def test_mm_net_tells_what_the_kernel_withholds(tmp_path: Path) -> None:
    without = ("prlimit", "--rtprio=0", "setpriv", "--bounding-set", "-sys_nice")
    assert not has_real_time_priority(*without) or os.geteuid() != 0
    assert "real-time priority" not in told(tmp_path, *without)


@pytest.mark.needs_namespaces
@pytest.mark.needs_shells
def test_a_file_that_cannot_be_written_is_told_before_the_command_runs(tmp_path: Path) -> None:
    command = [*namespaced("net"), tool("mm-net"), "--timekeeping", tmp_path / "no" / "file", "--", "echo", "ran"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"mm-net: cannot write {tmp_path}/no/file: No such file or directory (os error 2)\n"


@pytest.mark.parametrize(("told_by_mm_net", "warns"), [("real-time priority", False), ("ordinary priority", True)])
def test_who_measures_without_priority_is_told_how_to_have_it(
    monkeypatch: pytest.MonkeyPatch, told_by_mm_net: str, warns: bool
) -> None:
    monkeypatch.delenv("container", raising=False)
    monkeypatch.setattr(host, "timekeeping", lambda: told_by_mm_net)
    warning = host.priority_warning()
    assert bool(warning) is warns
    assert not warning or "setup/grant priority" in warning


def test_in_a_container_it_is_had_by_an_option_of_the_container(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("container", "oci")
    monkeypatch.setattr(host, "timekeeping", lambda: "ordinary priority")
    warning = host.priority_warning() or ""
    assert "--ulimit rtprio=1" in warning and "setup/grant" not in warning


@pytest.mark.parametrize(
    ("arguments", "warns"),
    [
        (["--net", "dsl"], True),
        (["--net", "dsl", "--shells", "mahimahi"], False),
        # Protocols are validated behind our shells always.
        (["--net", "dsl", "--proto", "tcp", "--shells", "mahimahi"], True),
        (["--proto", "tcp", "--shells", "mahimahi"], True),
    ],
)
def test_a_validation_warns_only_where_our_shells_take_part(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], warns: bool
) -> None:
    monkeypatch.setattr(validate_command, "require_browsing", lambda _: None)
    monkeypatch.setattr("replay.shells.registry.require_emulated", lambda *_, **__: None)
    monkeypatch.setattr("measure.validate.validation.validate", lambda *_, **__: ([], {}))
    monkeypatch.setattr("measure.host.timekeeping.priority_warning", lambda: "no priority here")
    done = CliRunner().invoke(validate_command.main, arguments)
    assert done.exit_code == 0, done.output
    assert ("no priority here" in done.output) is warns
