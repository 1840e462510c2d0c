"""A machine runs one measurement at a time: the second learns who runs the first, and no lock outlives its process."""

import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from base.errors import EyelevelError
from base.places import PROJECT
from dataset.table import DOCUMENT
from eyelevel.measuring import carry_out
from eyelevel.measuring_options import MeasuringOptions
from eyelevel.program import program
from measure.campaign.campaign import Campaign
from measure.host import exclusive
from measure.host.exclusive import VARIABLE, measuring_alone

# Takes the measuring lock, prints that, and starts a command or waits until its input ends.
MEASURING = """
import subprocess, sys
from measure.host.exclusive import measuring_alone
with measuring_alone("measuring"):
    print("measuring", flush=True)
    subprocess.run(sys.argv[1:], check=True) if sys.argv[1:] else sys.stdin.read()
"""
COMMAND = [sys.executable, "-c", MEASURING]


@pytest.fixture(autouse=True)
def lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "lock"))
    monkeypatch.setenv("PYTHONPATH", str(PROJECT))
    return tmp_path / "lock"


@contextmanager
def other_process() -> Iterator["subprocess.Popen[str]"]:
    """A process that measures for the duration of the block."""
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout and process.stdout.readline() == "measuring\n"
            yield process
        finally:
            process.kill()


def test_who_comes_second_is_told_in_one_line_who_measures_and_since_when() -> None:
    with other_process() as first:
        with pytest.raises(EyelevelError) as raised, measuring_alone("validating"):
            pass
        message = str(raised.value)
    assert re.match(r"\S+ has been measuring on this machine since \d{4}-\d\d-\d\d \d\d:\d\d \(process ", message)
    assert f"(process {first.pid}: {sys.executable} -c " in message
    assert message.endswith("validating would disturb that: wait until it has ended")
    assert message.isprintable()
    with measuring_alone("validating"):
        pass


def test_a_process_that_is_killed_leaves_no_lock() -> None:
    with other_process() as first:
        first.send_signal(signal.SIGKILL)
        first.wait()
        with measuring_alone("measuring"):
            pass


def test_what_a_measuring_process_starts_may_measure_too() -> None:
    with measuring_alone("measuring"):
        with measuring_alone("validating"):
            pass
        # A grandchild in a separate session.
        nested = ["setsid", "--wait", *COMMAND, *COMMAND]
        done = subprocess.run(nested, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
        assert done.stdout == "measuring\n" * 2


def test_a_child_that_outlives_who_measured_keeps_no_lock(tmp_path: Path) -> None:
    end = tmp_path / "end"
    os.mkfifo(end)
    with measuring_alone("measuring"):
        child = subprocess.Popen(["cat", end])
    with child, end.open("w"), other_process():
        assert child.poll() is None


def test_every_user_can_open_the_lock(lock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = os.umask(0o077)
    try:
        with measuring_alone("measuring"):
            assert stat.S_IMODE(lock.stat().st_mode) == 0o444
    finally:
        os.umask(before)
    monkeypatch.delenv(VARIABLE)
    assert exclusive.shared_folder().stat().st_mode & 0o1777 == 0o1777


def test_a_lock_that_cannot_be_opened_is_told_in_one_line(lock: Path) -> None:
    lock.symlink_to("/nowhere/at/all")
    message = "cannot find out whether somebody measures .*lock: .*; its owner or an administrator can remove it"
    with pytest.raises(EyelevelError, match=message), measuring_alone("measuring"):
        pass


@pytest.mark.needs_namespaces
@pytest.mark.needs_browser
def test_whatever_measures_is_refused_while_others_do(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "results" / "c", {}, {}, {}, runs=1, seed=1)
    here = MeasuringOptions("again", trust_workers=True, plain=True, validate=False)
    with other_process():
        with pytest.raises(EyelevelError, match=r"has been measuring .*; measuring would disturb that"):
            carry_out(campaign, here, Console())
        for arguments in (["validate", "--net", "dsl"], ["close", "--sites-folder", str(tmp_path)]):
            outcome = CliRunner().invoke(program, arguments)
            assert isinstance(outcome.exception, EyelevelError)
            assert "has been measuring on this machine since" in str(outcome.exception)
        assert not campaign.folder.parent.exists()
        # The workers of a cluster measure elsewhere.
        carry_out(campaign, replace(here, dask="tcp://localhost:8786"), Console())
        assert (campaign.folder / DOCUMENT).exists()
    other = replace(campaign, folder=tmp_path / "results" / "d")
    carry_out(other, here, Console())
    assert (other.folder / DOCUMENT).exists()
