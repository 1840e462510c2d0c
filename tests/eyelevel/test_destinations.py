"""Commands write a user's path completely, or refuse it in one line before doing anything else.

They never replace anything that is not a regular file.
"""

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread

import click
import pytest
from click.testing import CliRunner

from base.errors import EyelevelError
from base.files import require_file, require_replaceable, require_writable, write_file
from base.places import PROJECT
from eyelevel.options import OPTIONS, parameters
from eyelevel.program import program
from record.demo import generate
from record.site import write_site

pytestmark = pytest.mark.case("output-path-that-cannot-be")

LONG = "x" * 300
# Options whose path is only read, by command.
READ = {
    "FROM",
    "--hypotheses",
    "--study",
    "--package",
    "--declaration",
    "--corpus",
    "--heavy",
    "--origin-ca",
    "--script",
    "--tuning",
}
# Commands check these themselves, since the conditions depend on other options.
CHECKED_BY_THEMSELVES = {
    ("export", "--into"),
    ("probe-network", "--into"),
    ("probe-network", "--secret"),
    ("user-study serve", "FOLDER"),
    ("verify", "FOLDER"),
    ("history", "FOLDER"),
}


def test_every_path_that_a_command_writes_is_checked_before_the_command_begins(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    checked = 0
    for option in OPTIONS:
        if not isinstance(option.type, click.Path) or option.name in READ:
            continue
        if any((command, option.name) in CHECKED_BY_THEMSELVES for command in option.commands):
            continue
        (parameter,) = parameters([option])
        for path in (tmp_path / "file" / "x", tmp_path / LONG):
            with pytest.raises(EyelevelError, match="cannot be written") as raised:
                parameter.type.convert(str(path), parameter, None)
            assert "\n" not in str(raised.value) and "names another f" in str(raised.value)
            checked += 1
    assert checked >= 2 * 18
    assert list(tmp_path.iterdir()) == [tmp_path / "file"]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A recorded site, for commands that look for it in sites/."""
    write_site(generate("demo-light"), tmp_path / "sites" / "demo-light")
    monkeypatch.setattr("record.collection.SITES", tmp_path / "sites")
    yield tmp_path / "sites" / "demo-light"


def export(form: str, into: Path) -> None:
    CliRunner().invoke(program, ["export", "demo-light", "--as", form, "--into", str(into)], catch_exceptions=False)


@pytest.mark.parametrize("form", ["har", "wacz", "mahimahi"])
def test_an_export_that_cannot_be_written_is_refused_in_a_line(site: Path, tmp_path: Path, form: str) -> None:
    (folder := tmp_path / "folder").mkdir()
    (folder / "mine").touch()
    places = [tmp_path / LONG, folder / "mine" / "x", folder if form != "mahimahi" else folder / "mine"]
    for place in [*places, *([tmp_path / "missing" / "x"] if form != "mahimahi" else [])]:
        with pytest.raises(EyelevelError, match="cannot be written") as raised:
            export(form, place)
        assert str(place) in str(raised.value) and "\n" not in str(raised.value)
    assert [path.name for path in folder.iterdir()] == ["mine"]
    assert {path.name for path in tmp_path.iterdir()} == {"folder", "sites"}


@pytest.mark.parametrize("form", ["har", "wacz"])
def test_an_export_is_written_into_a_pipe(site: Path, tmp_path: Path, form: str) -> None:
    os.mkfifo(pipe := tmp_path / "pipe")
    contents: list[bytes] = []
    reader = Thread(target=lambda: contents.append(pipe.read_bytes()), daemon=True)
    reader.start()
    export(form, pipe)
    reader.join(60)
    export(form, tmp_path / "file")
    assert contents == [(tmp_path / "file").read_bytes()]
    assert stat.S_ISFIFO(pipe.lstat().st_mode)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes devices")
def test_a_device_stays_a_device(tmp_path: Path) -> None:
    node = tmp_path / "null"
    try:
        os.mknod(node, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
        node.open("wb").close()
    except PermissionError:
        pytest.skip("this file system has no devices")
    require_file(node, "choose")
    write_file(node, "text")
    assert stat.S_ISCHR(node.lstat().st_mode) and [path.name for path in tmp_path.iterdir()] == ["null"]


def test_what_is_neither_file_nor_pipe_nor_device_is_refused(tmp_path: Path) -> None:
    os.mknod(tmp_path / "socket", 0o600 | stat.S_IFSOCK)
    (tmp_path / "circle").symlink_to(tmp_path / "circle")
    for name in ("socket", "circle", "."):
        with pytest.raises(EyelevelError, match=r"cannot be written .*; choose"):
            require_file(tmp_path / name, "choose")
        with pytest.raises(EyelevelError, match="cannot be written"):
            write_file(tmp_path / name, "text")
    with pytest.raises(EyelevelError, match="cannot be replaced; choose"):
        require_replaceable(Path(), "choose")
    for require in (require_writable, require_replaceable):
        with pytest.raises(EyelevelError, match=r"cannot be written .*; choose"):
            require(tmp_path / "socket", "choose")
    assert stat.S_ISSOCK((tmp_path / "socket").lstat().st_mode)


def test_a_link_stays_and_the_file_that_it_leads_to_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (target := tmp_path / "elsewhere" / "file").write_text("old")
    (link := tmp_path / "link").symlink_to(target)
    require_file(link, "choose")
    write_file(link, "new")
    assert link.is_symlink() and target.read_text() == "new"
    assert list((tmp_path / "elsewhere").iterdir()) == [target]


def test_standard_output_keeps_what_was_written_to_it(tmp_path: Path) -> None:
    (conditions := tmp_path / "down.csv").write_text("time_s,rate_mbps\n0,12\n1,12\n")
    command = [sys.executable, "-m", "eyelevel", "convert-trace", str(conditions), "--into", "/dev/stdout"]
    with (tmp_path / "out").open("wb") as out:
        out.write(b"before\n")
        out.flush()
        subprocess.run(command, cwd=PROJECT, stdout=out, check=True)
        out.write(b"after\n")
    lines = (tmp_path / "out").read_text().splitlines()
    assert (lines[0], lines[-1], len(lines)) == ("before", "after", 1002)


@pytest.mark.needs_namespaces
def test_a_request_log_that_cannot_be_written_is_refused_before_the_command_runs(tmp_path: Path) -> None:
    command = ["touch", str(tmp_path / "ran")]
    options = ["--site", "demo-light", "--net", "dsl", "--proto", "tcp"]
    for log in (tmp_path / "missing" / "log", tmp_path):
        words = ["replay", *options, "--request-log", str(log), "--", *command]
        with pytest.raises(EyelevelError, match=r"cannot be written .*; --request-log names another file"):
            CliRunner().invoke(program, words, catch_exceptions=False)
    assert not list(tmp_path.iterdir())


def test_a_package_or_a_comparison_that_cannot_be_written_is_refused_before_it_is_made(tmp_path: Path) -> None:
    simulated = tmp_path / "campaign"
    CliRunner().invoke(program, ["simulate", str(simulated), "--runs", "2", "--sites", "2"], catch_exceptions=False)
    compared = ["compare", "--a", simulated, "--b", simulated]
    for words in (["package", simulated], ["report", simulated], compared, ["combine", simulated, simulated]):
        done = CliRunner().invoke(program, [*map(str, words), "--into", str(simulated / "runs.csv")])
        assert isinstance(done.exception, EyelevelError) and "runs.csv cannot be written" in str(done.exception)
        assert "reading" not in done.output
