"""`eyelevel init` makes a folder of the user's own, in which make and the program work as in the checkout, and which
keeps what they write."""

import errno
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
from support.leaks import MARK

from base import places
from base.errors import EyelevelError
from base.places import OWN_MARK, PROJECT
from eyelevel.commands.init import MAKEFILE, NETWORK, PROTOCOL, main
from eyelevel.make import main as run_target
from eyelevel.make import targets
from eyelevel.program import program

# A method that fails while the folder is written, and at which file or folder.
FAILING = {"mkdir": "tuning", "write_text": OWN_MARK}


def init(folder: Path) -> Result:
    return CliRunner().invoke(main, [str(folder)], catch_exceptions=False)


def run(folder: Path, *command: str) -> str:
    """The output of `command` in `folder`, in an environment that knows no other settings."""
    kept = {"PATH", "HOME", "EYELEVEL_CACHE", "TMPDIR", MARK}
    environment = {name: value for name, value in os.environ.items() if name in kept} | {"COLUMNS": "200"}
    if command[0] == "eyelevel":  # as setup/program calls it
        command = (sys.executable, "-P", "-m", *command)
        environment["PYTHONPATH"] = str(PROJECT)
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
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


def test_the_example_is_outside_the_checkout_in_which_make_runs_it() -> None:
    example = targets()["init"].example
    assert not (PROJECT / example.partition(" FOLDER=")[2]).resolve().is_relative_to(PROJECT)
    assert f"`{example}`" in (PROJECT / "docs" / "cookbook.md").read_text()
    assert f"`{example}`" in (PROJECT / "docs" / "campaigns.md").read_text()


def test_an_empty_folder_stays_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder := tmp_path / "mine").mkdir()
    before = folder.stat().st_ino
    monkeypatch.chdir(folder)
    assert init(Path()).exit_code == 0
    assert folder.stat().st_ino == before and places.own_folder() == folder
    (tmp_path / "disk").mkdir()
    (tmp_path / "link").symlink_to("disk")
    assert init(tmp_path / "link").exit_code == 0
    assert (tmp_path / "link").is_symlink() and (tmp_path / "disk" / "Makefile").exists()
    assert {path.name for path in tmp_path.iterdir()} == {"mine", "disk", "link"}


@pytest.mark.parametrize(
    ("failing", "name", "is_there"),
    [(method, name, there) for method, name in FAILING.items() for there in (False, True)]
    + [("iterdir", "mine", True)],
)
def test_a_failure_is_told_in_a_line_and_leaves_no_part_of_it(
    failing: str, name: str, is_there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_there:
        (tmp_path / "mine").mkdir()
    before = [*tmp_path.rglob("*")]
    original = getattr(Path, failing)

    def fail(path: Path, *values: object, **more: object) -> object:
        if path.name == name:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return original(path, *values, **more)

    with monkeypatch.context() as patch:
        patch.setattr(Path, failing, fail)
        with pytest.raises(EyelevelError, match="mine cannot be written: No space left on device"):
            init(tmp_path / "mine")
    assert [*tmp_path.rglob("*")] == before


def test_a_link_to_nothing_stays_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "mine").symlink_to(tmp_path / "unmounted")
    with pytest.raises(EyelevelError, match="mine cannot be written"):
        init(tmp_path / "mine")
    assert (tmp_path / "mine").is_symlink()


def test_an_interrupt_leaves_no_part_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_text, is_marked = Path.write_text, []

    def fail(path: Path, text: str) -> int:
        if path.name == "protocols.toml":
            is_marked.append((tmp_path / "mine" / OWN_MARK).exists())
            raise KeyboardInterrupt
        return write_text(path, text)

    monkeypatch.setattr(Path, "write_text", fail)
    CliRunner().invoke(main, [str(tmp_path / "mine")])
    assert list(tmp_path.iterdir()) == [] and is_marked == [False], "the mark is the last"


def test_only_a_mark_of_the_user_s_own_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    init(tmp_path / "mine")
    monkeypatch.chdir(tmp_path)
    assert places.own_folder() is None and not places.foreign_mark()
    monkeypatch.chdir(tmp_path / "mine" / "sites")
    assert places.own_folder() == tmp_path / "mine" and not places.foreign_mark()
    # A link and a folder are no marks.
    Path(OWN_MARK).symlink_to(tmp_path / "mine" / OWN_MARK)
    (tmp_path / "mine" / "tuning" / OWN_MARK).mkdir()
    assert places.own_folder() == tmp_path / "mine"
    monkeypatch.chdir(tmp_path / "mine" / "tuning")
    assert places.own_folder() == tmp_path / "mine"
    # In a checkout below one's own folder, results are the checkout's.
    with monkeypatch.context() as patch:
        patch.setattr(places, "PROJECT", tmp_path / "mine" / "tuning")
        assert places.own_folder() is None and not places.foreign_mark()


def test_a_folder_that_was_removed_has_no_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert places.own_folder() is None and not places.foreign_mark()


def test_a_mark_of_somebody_else_s_does_not_count_and_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    init(tmp_path / "mine")
    monkeypatch.chdir(tmp_path / "mine")
    monkeypatch.setattr(sys, "argv", ["make", "--print", "status", "status", "CAMPAIGN=first"])
    monkeypatch.setenv("EYELEVEL_FOLDER", str(tmp_path / "mine"))
    run_target()
    assert capsys.readouterr() == ("eyelevel status first\n", "")
    owner = os.getuid()
    monkeypatch.setattr(os, "geteuid", lambda: owner + 1)
    monkeypatch.setenv("SUDO_UID", str(owner))  # only root believes it
    assert places.own_folder() is None
    foreign = f"{tmp_path}/mine/{OWN_MARK} belongs to user {owner} and counts only for that user; "
    done = CliRunner().invoke(program, ["completion", "bash"])
    assert done.exit_code == 0 and done.stderr == f"eyelevel: {foreign}sites and results are those in {PROJECT}\n"
    with pytest.raises(SystemExit):
        run_target()
    assert foreign in capsys.readouterr().err
    (tmp_path / "mine" / OWN_MARK).unlink()
    with pytest.raises(SystemExit):
        run_target()
    assert f"{tmp_path}/mine has no {OWN_MARK}; " in capsys.readouterr().err


def test_the_mark_of_who_used_sudo_counts_for_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    init(tmp_path / "mine")
    monkeypatch.chdir(tmp_path / "mine")
    caller = os.getuid() or 1234
    os.chown(tmp_path / "mine" / OWN_MARK, caller, -1)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.delenv("SUDO_UID", raising=False)
    assert places.own_folder() is None
    monkeypatch.setenv("SUDO_UID", str(caller))
    assert places.own_folder() == tmp_path / "mine"
