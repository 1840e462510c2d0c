"""A long campaign of which not all was named begins only when its user says so."""

import os
import pty
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest
from rich.console import Console

from base.errors import EyelevelError
from base.places import PROJECT
from eyelevel.consent import require_consent
from eyelevel.options import campaign_folder
from measure.campaign.campaign import Campaign
from measure.table import DOCUMENT
from record.collection import choose_sites
from tuning import networks, protocols

# Two days of a demo site over all networks and protocols, of which nothing but the site and the runs is named.
LONG = ("--sites", "demo-light", "--runs", "2000", "--campaign", "lte-qiuc")


def campaign(folder: Path, runs: int) -> Campaign:
    chosen = {name: protocols.load()[name] for name in ("tcp", "quic")}
    sites = {site.name: site for site in choose_sites(["demo-light"])}
    return Campaign(folder, sites, {"lte": networks.load()["lte"]}, chosen, runs=runs, seed=1)


def similar(results: Path) -> None:
    """There is a campaign lte-quic in `results`."""
    (results / "lte-quic").mkdir(parents=True)
    (results / "lte-quic" / DOCUMENT).write_text("{}")


def command(results: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "eyelevel", "campaign", *LONG, "--results", str(results), *options]


def test_without_a_terminal_it_is_refused_in_a_line_that_says_what_to_do(tmp_path: Path) -> None:
    similar(tmp_path)
    done = subprocess.run(command(tmp_path), cwd=PROJECT, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert done.returncode
    # The site may have been generated before.
    *_, line = done.stderr.splitlines()
    assert " d " in line and "NET and PROTO were not named; there is a campaign lte-quic" in line
    assert "YES=1" in line
    assert [path.name for path in tmp_path.iterdir()] == ["lte-quic"]


def test_at_a_terminal_it_waits_for_a_key(tmp_path: Path) -> None:
    terminal, ours = pty.openpty()
    with subprocess.Popen(command(tmp_path), cwd=PROJECT, stdin=ours, stdout=ours, stderr=ours) as process:
        os.close(ours)
        try:
            text = b""
            while b"any other key to leave it" not in text:
                text += os.read(terminal, 4096)
            # What is typed before a single key is waited for is thrown away.
            while termios.tcgetattr(terminal)[3] & termios.ICANON:
                time.sleep(0.01)
            assert process.poll() is None
            os.write(terminal, b"n")
            assert process.wait()
        finally:
            process.kill()
    os.close(terminal)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("runs", "unnamed", "agreed"), [(9, ["NET"], False), (99999, [], False), (99999, ["NET"], True)]
)
def test_what_is_short_or_named_or_agreed_to_is_not_asked_about(
    tmp_path: Path, runs: int, unnamed: list[str], agreed: bool
) -> None:
    require_consent(campaign(tmp_path / "c", runs), unnamed, Console(), agreed=agreed, lanes=1)


def test_lanes_make_it_shorter(tmp_path: Path) -> None:
    long = campaign(tmp_path / "c", 9999)
    require_consent(long, ["NET"], Console(), agreed=False, lanes=9)
    with pytest.raises(EyelevelError, match=r"new campaign c would take about .* d .* h and .* NET was not named"):
        require_consent(long, ["NET"], Console(), agreed=False, lanes=1)


def test_a_mistyped_campaign_is_told_which_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eyelevel.options.RESULTS", tmp_path)
    similar(tmp_path)
    with pytest.raises(EyelevelError, match=r"is a folder; there is a campaign lte-quic$"):
        campaign_folder("lte-qiuc")
    with pytest.raises(EyelevelError, match=r"is a folder$"):
        campaign_folder("dsl")
