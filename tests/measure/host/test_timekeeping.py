"""The priority with which the emulated network keeps time is known, and a report says if it could be better."""

import os
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner

from base.namespaces import namespaced
from base.places import tool
from eyelevel.commands.validate import choose_subjects, main, need_our_shells
from measure.host.timekeeping import priority_warning


def has_real_time_priority(*prefix: str) -> bool:
    """Whether a process may have real-time priority, according to another program than ours."""
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


def test_who_measures_without_priority_is_told_how_to_have_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("container", raising=False)
    assert priority_warning("real-time priority") is None
    assert "setup/grant priority" in str(priority_warning("ordinary priority"))


def test_in_a_container_it_is_had_by_an_option_of_the_container(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("container", "oci")
    warning = priority_warning("ordinary priority") or ""
    assert "--ulimit rtprio=1" in warning and "setup/grant" not in warning


@pytest.mark.parametrize(
    ("net", "proto", "shells", "needed"),
    [
        ("dsl", None, "ours", True),
        ("dsl", None, "mahimahi", False),
        # Protocols are always validated with our shells.
        ("dsl", "tcp", "mahimahi", True),
        (None, "tcp", "mahimahi", True),
    ],
)
def test_our_shells_take_part_in_each_validation_but_of_networks_of_others(
    net: str | None, proto: str | None, shells: str, needed: bool
) -> None:
    _, protocols = choose_subjects(net, proto, None)
    assert need_our_shells(protocols, shells) is needed


@pytest.mark.needs_namespaces
@pytest.mark.needs_browser
@pytest.mark.parametrize("means", ["real-time priority", "ordinary priority"])
def test_a_validation_warns_where_our_shells_take_part_without_priority(
    monkeypatch: pytest.MonkeyPatch, means: str
) -> None:
    monkeypatch.setattr("measure.validate.validation.validate", lambda *_, **__: ([], {}))
    monkeypatch.setattr("measure.host.timekeeping.timekeeping", lambda: means)
    done = CliRunner().invoke(main, ["--net", "dsl"])
    assert done.exit_code == 0, done.output
    assert ("no real-time priority here" in done.output) is (means == "ordinary priority")
