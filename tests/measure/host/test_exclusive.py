"""A machine runs one measurement at a time: the second waits for the first, and no lock outlives its process."""

import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from subprocess import PIPE
from types import SimpleNamespace

import pytest
from rich.console import Console

from base.errors import EyelevelError
from base.files import lock_holder, locked
from base.places import PROJECT
from dataset.table import DOCUMENT
from eyelevel import estimate
from eyelevel.measuring import carry_out
from eyelevel.measuring_options import MeasuringOptions
from measure.campaign.campaign import Campaign
from measure.campaign.forecast import Forecast
from measure.host import exclusive
from measure.host.exclusive import VARIABLE, measuring_alone

# Takes the measuring lock, prints that, and starts a command or waits until its input ends.
MEASURING = """
import subprocess, sys
from measure.host.exclusive import measuring_alone
with measuring_alone():
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
    with subprocess.Popen(COMMAND, stdin=PIPE, stdout=PIPE, text=True) as process:
        try:
            assert process.stdout and process.stdout.readline() == "measuring\n"
            yield process
        finally:
            process.kill()


@contextmanager
def waiting_process(command: Sequence[str]) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """A process that runs `command` and waits for the lock, and the line that it printed."""
    with subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=PIPE, text=True) as process:
        try:
            assert process.stderr
            line = next(line for line in process.stderr if "waiting" in line)
            yield process, line
        finally:
            process.kill()


def test_who_comes_second_waits_and_says_for_whom_in_one_line() -> None:
    with other_process() as first, waiting_process(COMMAND) as (second, line):
        who = r"waiting for the measurement that \S+ began on \d{4}-\d\d-\d\d at \d\d:\d\d in "
        assert re.match(f"{who}{re.escape(str(Path.cwd()))} \\(process {first.pid}: {sys.executable} -c ", line)
        assert line.endswith("); how long is not known; Ctrl-C ends the wait\n")
        assert line.strip().isprintable()
        assert first.stdin and second.stdout
        first.stdin.close()
        assert second.stdout.readline() == "measuring\n"


def test_who_waits_for_a_campaign_says_how_long_that_takes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = [sys.executable, "-c", MEASURING.replace("alone()", "alone(lambda pid: 300.0)")]
    with other_process(), waiting_process(command) as (_, line):
        assert line.endswith("); its runs take at most about 5 min more; Ctrl-C ends the wait\n")
    (tmp_path / DOCUMENT).touch()
    monkeypatch.setattr(
        estimate, "status", lambda folder: SimpleNamespace(expected=Forecast(300.0 * (folder == tmp_path), 0))
    )
    assert estimate.left_s(os.getpid()) is None
    with locked(tmp_path):
        assert estimate.left_s(os.getpid()) == 300


def test_an_interrupt_ends_the_wait(lock: Path) -> None:
    command = [sys.executable, "-m", "eyelevel", "validate", "--net", "dsl", "--proto", "none"]
    with other_process(), waiting_process(command) as (second, _):
        second.send_signal(signal.SIGINT)
        assert second.wait() == 130
        assert second.stdout and second.stdout.read() == ""


def test_who_waited_locks_the_file_that_replaced_a_removed_one(lock: Path) -> None:
    with other_process() as first, waiting_process(COMMAND) as (second, _):
        lock.unlink()
        assert first.stdin and second.stdout
        first.stdin.close()
        assert second.stdout.readline() == "measuring\n"
        assert lock_holder(lock) == second.pid


def test_a_process_that_is_killed_leaves_no_lock() -> None:
    with other_process() as first:
        first.send_signal(signal.SIGKILL)
        first.wait()
        with measuring_alone():
            pass


def test_what_a_measuring_process_starts_may_measure_too() -> None:
    with measuring_alone():
        with measuring_alone():
            pass
        # A grandchild in a separate session.
        nested = ["setsid", "--wait", *COMMAND, *COMMAND]
        done = subprocess.run(nested, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True)
        assert done.stdout == "measuring\n" * 2


def test_a_child_that_outlives_who_measured_keeps_no_lock(tmp_path: Path) -> None:
    end = tmp_path / "end"
    os.mkfifo(end)
    with measuring_alone():
        child = subprocess.Popen(["cat", end])
    with child, end.open("w"), other_process():
        assert child.poll() is None


def test_every_user_can_open_the_lock(lock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = os.umask(0o077)
    try:
        with measuring_alone():
            assert stat.S_IMODE(lock.stat().st_mode) == 0o444
    finally:
        os.umask(before)
    monkeypatch.delenv(VARIABLE)
    assert exclusive.shared_folder().stat().st_mode & 0o1777 == 0o1777


def test_a_lock_that_cannot_be_opened_is_told_in_one_line(lock: Path) -> None:
    lock.symlink_to("/nowhere/at/all")
    message = "cannot determine whether a measurement runs .*lock: .*; its owner or an administrator can remove it"
    with pytest.raises(EyelevelError, match=message), measuring_alone():
        pass


@pytest.mark.needs_namespaces
@pytest.mark.needs_browser
def test_a_campaign_that_another_process_measures_is_refused_at_once(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "results" / "c", {}, {}, {}, runs=1, seed=1)
    here = MeasuringOptions("again", trust_workers=True, plain=True, validate=False)
    script = "import sys; from pathlib import Path; from base.files import locked\n"
    script += f"with locked(Path({str(campaign.folder)!r})): print(flush=True); sys.stdin.read()"
    campaign.folder.mkdir(parents=True)
    with other_process(), subprocess.Popen([sys.executable, "-c", script], stdin=PIPE, stdout=PIPE) as process:
        assert process.stdout and process.stdout.readline()
        with pytest.raises(EyelevelError, match="another process is measuring the campaign c"):
            carry_out(campaign, here, Console())
        process.kill()
    assert not (campaign.folder / DOCUMENT).exists()


@pytest.mark.needs_namespaces
@pytest.mark.needs_browser
def test_a_campaign_on_a_cluster_waits_for_no_measurement_here(tmp_path: Path) -> None:
    campaign = Campaign(tmp_path / "results" / "c", {}, {}, {}, runs=1, seed=1)
    here = MeasuringOptions("again", trust_workers=True, plain=True, validate=False)
    with other_process():
        carry_out(campaign, replace(here, dask="tcp://localhost:8786"), Console())
    assert (campaign.folder / DOCUMENT).exists()
