"""A long campaign with unnamed parts begins only if its user agrees."""

import os
import pty
import signal
import socket
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from base.errors import EyelevelError
from base.places import PROJECT
from dataset.table import DOCUMENT
from eyelevel.arguments import campaign_folder
from eyelevel.consent import require_consent
from eyelevel.measuring_options import MeasuringOptions
from eyelevel.program import program
from eyelevel.study_command import study_command
from measure.campaign.campaign import Campaign
from measure.host.lanes import Lanes
from record.collection import choose_sites
from studies import STUDIES
from tuning import networks, protocols

# Campaigns that take days: a demo site over all networks and protocols, with only the site and the runs named; and a
# study.
LONG = ("campaign", "--sites", "demo-light", "--runs", "2000", "--films", "none", "--campaign", "lte-qiuc")
LONG_STUDY = ("fairness", "--seconds", "36000", "--mixes", "1x1", "--runs", "3", "--campaign", "lte-qiuc")
# The address of no cluster: a campaign that begins makes no run there.
NOWHERE = "tcp://127.0.0.1:1"
UNNAMED = MeasuringOptions("again", unnamed=["NET"])
# How long a campaign may take to begin on a busy machine, and the exit status of a stopped one.
PATIENCE_S = 120
STOPPED = 130
# A network so far that a load takes six minutes, and a number of runs on it that take days.
FAR = replace(networks.load()["lte"], min_rtt_ms=36_000)
LONG_RUNS = 330


def campaign(folder: Path, runs: int) -> Campaign:
    chosen = {name: protocols.load()[name] for name in ("tcp", "quic")}
    sites = {site.name: site for site in choose_sites(["demo-light"])}
    return Campaign(folder, sites, {"lte": FAR}, chosen, runs=runs, seed=1)


def similar(results: Path) -> None:
    """Create a campaign lte-quic in `results`."""
    (results / "lte-quic").mkdir(parents=True)
    (results / "lte-quic" / DOCUMENT).write_text("{}")


def command(results: Path, what: Sequence[str], *options: str) -> list[str]:
    return [sys.executable, "-m", "eyelevel", *what, "--results", str(results), *options]


@pytest.mark.parametrize("what", [LONG, LONG_STUDY])
def test_without_a_terminal_it_is_refused_in_a_line_that_says_what_to_do(tmp_path: Path, what: Sequence[str]) -> None:
    similar(tmp_path)
    # If it began, it would measure on no cluster.
    refused = CliRunner().invoke(program, [*what, "--results", str(tmp_path), "--dask", NOWHERE, "--insecure"])
    assert isinstance(refused.exception, EyelevelError)
    (line,) = str(refused.exception).splitlines()
    assert " d " in line and "NET and PROTO were not named; did you mean the campaign lte-quic?" in line
    assert "YES=1" in line
    assert [path.name for path in tmp_path.iterdir()] == ["lte-quic"]


@contextmanager
def asked(
    results: Path, what: Sequence[str], scheduler: str = NOWHERE
) -> Iterator[tuple["subprocess.Popen[bytes]", int]]:
    """The command, which has asked its question and waits for a key, and its terminal.

    If it begins, it measures on the cluster of this `scheduler`.
    """
    terminal, ours = pty.openpty()
    with subprocess.Popen(
        command(results, what, "--dask", scheduler, "--insecure"), cwd=PROJECT, stdin=ours, stdout=ours, stderr=ours
    ) as (process):
        os.close(ours)
        try:
            text = b""
            while b"any other key to leave it" not in text:
                text += os.read(terminal, 4096)
            # Keys typed before the program waits for a single key are discarded.
            while termios.tcgetattr(terminal)[3] & termios.ICANON:
                time.sleep(0.01)
            assert process.poll() is None
            assert not list(results.iterdir())
            yield process, terminal
        finally:
            process.kill()
    os.close(terminal)


def rest_of(terminal: int) -> str:
    """The output on the terminal from now on until the last program has closed it; then reading fails."""
    text = b""
    with suppress(OSError):
        while more := os.read(terminal, 4096):
            text += more
    return text.decode()


@pytest.mark.slow
@pytest.mark.parametrize(("what", "key"), [(LONG, "\x03"), (LONG_STUDY, "\x04")])
def test_at_a_terminal_any_key_but_y_leaves_it(tmp_path: Path, what: Sequence[str], key: str) -> None:
    with asked(tmp_path, what) as (process, terminal):
        os.write(terminal, key.encode())
        assert "Traceback" not in rest_of(terminal)
        assert process.wait()
    assert not list(tmp_path.iterdir())


@pytest.mark.needs_namespaces
def test_at_a_terminal_y_begins_it(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as scheduler:
        scheduler.settimeout(PATIENCE_S)
        address = f"tcp://127.0.0.1:{scheduler.getsockname()[1]}"
        with asked(tmp_path, LONG, address) as (process, terminal):
            os.write(terminal, b"Y")
            # After its beginning, a campaign first looks for workers.
            connection, _ = scheduler.accept()
            with connection:
                process.send_signal(signal.SIGINT)
                assert "stopped; results so far are in" in rest_of(terminal)
            assert process.wait() == STOPPED
    assert (tmp_path / "lte-qiuc" / DOCUMENT).exists()


@pytest.mark.slow
@pytest.mark.parametrize(("key", "begins"), [("n", False), ("\r", False), ("\x1b[A", False), ("y", True), ("Y", True)])
def test_the_key_alone_decides(tmp_path: Path, key: str, *, begins: bool) -> None:
    refusal = nullcontext() if begins else pytest.raises(EyelevelError, match="c was not begun; nothing was written")
    with refusal:
        require_consent(campaign(tmp_path / "c", LONG_RUNS), UNNAMED, Console(), lambda *_: key)


def test_what_decides_how_long_a_study_takes_is_an_option_of_it() -> None:
    for study in STUDIES:
        options = {option.name for option in study_command(study).params}
        assert study.decisive and options.issuperset(study.decisive), study.name


@pytest.mark.parametrize(
    ("runs", "unnamed", "further"),
    [
        (9, ["NET"], {}),
        (LONG_RUNS, [], {}),
        (LONG_RUNS, ["NET"], {"agreed": True}),
        (LONG_RUNS, ["NET"], {"budget_s": 60.0}),
    ],
)
def test_what_is_short_or_named_or_agreed_to_or_has_a_budget_is_not_asked_about(
    tmp_path: Path, runs: int, unnamed: list[str], further: dict[str, Any]
) -> None:
    options = MeasuringOptions("again", unnamed=unnamed, **further)
    require_consent(campaign(tmp_path / "c", runs), options, Console())


@pytest.mark.slow
def test_lanes_make_it_shorter(tmp_path: Path) -> None:
    long = campaign(tmp_path / "c", LONG_RUNS)
    require_consent(replace(long, lanes=Lanes(9)), UNNAMED, Console())
    with pytest.raises(EyelevelError, match=r"new campaign c would take about .* d .* h and .* NET was not named"):
        require_consent(long, UNNAMED, Console())


def test_a_mistyped_campaign_is_told_which_there_is(tmp_path: Path) -> None:
    similar(tmp_path)
    with pytest.raises(EyelevelError, match=r"^there is no campaign lte-qiuc; did you mean lte-quic\? \(neither "):
        campaign_folder("lte-qiuc", tmp_path)
    how = "name a folder in results/, or give a path"
    with pytest.raises(EyelevelError, match=rf"^there is no campaign dsl; {how} \(neither .* is a folder\)$"):
        campaign_folder("dsl", tmp_path)
