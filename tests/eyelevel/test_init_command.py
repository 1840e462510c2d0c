"""`eyelevel init` makes a folder of the user's own, in which make and the program work as in the checkout, and which
keeps what they write."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from base import places
from base.errors import EyelevelError
from base.places import PROJECT
from eyelevel.commands.init import MAKEFILE, NETWORK, PROTOCOL, main
from eyelevel.program import program


def init(folder: Path) -> Result:
    return CliRunner().invoke(main, [str(folder)], catch_exceptions=False)


def run(folder: Path, *command: str) -> str:
    """The output of `command` in `folder`, in an environment that knows no other settings."""
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "COLUMNS": "200"}
    if "EYELEVEL_CACHE" in os.environ:
        environment["EYELEVEL_CACHE"] = os.environ["EYELEVEL_CACHE"]
    if command[0] == "eyelevel":  # as setup/program calls it
        command = (sys.executable, "-P", "-m", *command)
        environment["PYTHONPATH"] = str(PROJECT)
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_make_and_the_program_work_in_the_folder_as_its_readme_says(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    assert init(folder).exit_code == 0
    assert len(MAKEFILE.splitlines()) == 10
    # The checkout, without its set-up.
    checkout = tmp_path / "it's $HOME"
    (checkout / "setup").mkdir(parents=True)
    (checkout / "setup" / "make").symlink_to(PROJECT / "setup" / "make")
    (checkout / "setup" / "setup.sh").write_text("#!/bin/sh\n")
    (checkout / "setup" / "setup.sh").chmod(0o755)
    for entry in PROJECT.iterdir():
        if entry.name != "setup":
            (checkout / entry.name).symlink_to(entry)
    path = shlex.quote(str(checkout)).replace("$", "$$")
    makefile = folder / "Makefile"
    makefile.write_text(re.sub(r"(?m)^CHECKOUT := .*$", lambda _: f"CHECKOUT := {path}", makefile.read_text()))

    python = f"PYTHON={sys.executable}"
    commands = [line for line in (folder / "README.md").read_text().splitlines() if line.startswith("make ")]
    assert [line.split()[1] for line in commands] == ["record", "validate", "campaign", "report"]
    for command in commands:
        printed = run(folder, *shlex.split(command), "-n", python).splitlines()
        lines = [shlex.split(line)[1:] for line in printed if line.startswith("eyelevel ")]
        assert [line[0] for line in lines][:1] == [command.split()[1]]
        for line in lines:
            context = click.Context(program)
            _, part, rest = program.resolve_command(context, line)
            assert part
            part.make_context(line[0], rest)
    odd = "a b$c'd \"#"
    assert shlex.quote(odd) in run(folder, "make", "-n", "import", f"FROM={odd}", python)
    # Settings are those of tuning/, and sites and results are in the folder.
    (folder / "below").mkdir()
    assert PROTOCOL in run(folder, "make", "protocols", f"PROTO={PROTOCOL}", python)
    assert "make campaign" in run(folder, "make")
    run(folder, "eyelevel", "demo", "demo-light")
    assert [path.name for path in (folder / "sites").iterdir()] == ["demo-light"]
    campaign = PROJECT / "docs" / "first-hour" / "near"
    shutil.copytree(campaign, folder / "results" / "first", ignore=shutil.ignore_patterns("report"))
    # The name of a campaign is one in this folder's results, also for who is below.
    assert json.loads(run(folder / "below", "eyelevel", "status", "first", "--json"))["done"] > 0


def test_a_network_of_ones_own_is_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tuning import networks, protocols
    from tuning.settings import USER_FOLDER

    init(tmp_path / "mine")
    monkeypatch.setenv(USER_FOLDER, str(tmp_path / "mine" / "tuning"))
    assert networks.load()[NETWORK].min_rtt_ms == 40 and "lte" in networks.load()
    assert protocols.load()[PROTOCOL].initial_window_packets == 64


def test_what_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    assert init(tmp_path / "mine").exit_code == 0, "an empty folder is taken"
    before = sorted(tmp_path.rglob("*"))
    (tmp_path / "mine" / "plan.toml").write_text("mine")
    with pytest.raises(EyelevelError, match="is not empty; name a new folder"):
        init(tmp_path / "mine")
    with pytest.raises(EyelevelError, match=r"is in the checkout .*; name a folder outside"):
        init(PROJECT / "results" / "mine")
    assert sorted(tmp_path.rglob("*")) == before and (tmp_path / "mine" / "plan.toml").read_text() == "mine"


def test_a_failure_leaves_no_part_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_text = Path.write_text

    def fail(path: Path, text: str) -> int:
        if path.name == "protocols.toml":
            raise KeyboardInterrupt
        return write_text(path, text)

    monkeypatch.setattr(Path, "write_text", fail)
    CliRunner().invoke(main, [str(tmp_path / "mine")])
    assert list(tmp_path.iterdir()) == []


def test_the_folder_of_somebody_else_does_not_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    init(tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    assert places.own_folder() is None
    monkeypatch.chdir(tmp_path / "mine" / "sites")
    assert places.own_folder() == tmp_path / "mine"
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    monkeypatch.delenv("SUDO_UID", raising=False)
    assert places.own_folder() is None
    monkeypatch.setenv("SUDO_UID", str(os.getuid()))
    assert places.own_folder() == tmp_path / "mine"
