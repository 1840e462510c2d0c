"""A campaign identifies the testbed by its commit: in a checkout, in an archive of it, and in an image."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from base.places import PROJECT
from measure.host.machine import COMMIT, commit_of_testbed

pytestmark = pytest.mark.needs_git


def git(folder: Path, *arguments: str) -> str:
    identity = {f"GIT_{who}_{what}": "x@example" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    environment = {**os.environ, **identity, "GIT_CONFIG_GLOBAL": "/dev/null"}
    command = ["git", "-C", str(folder), *arguments]
    return subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with the files that determine the version, and one commit."""
    folder = tmp_path / "checkout"
    (folder / "setup").mkdir(parents=True)
    for name in (".gitattributes", COMMIT):
        shutil.copyfile(PROJECT / name, folder / name)
    # The content of this file in a checkout, even if this test itself runs in an archive or an image.
    (folder / COMMIT).write_text("$Format:%h$\n")
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "all")
    return folder


def archived(checkout: Path, into: Path) -> Path:
    into.mkdir()
    archive = into.with_suffix(".zip")
    git(checkout, "archive", f"--output={archive}", "HEAD")
    shutil.unpack_archive(archive, into)
    return into


def test_a_checkout_says_its_commit_and_whether_it_was_changed(checkout: Path) -> None:
    commit = git(checkout, "rev-parse", "--short", "HEAD")
    assert commit_of_testbed(checkout) == commit
    (checkout / COMMIT).write_text("changed\n")
    assert commit_of_testbed(checkout) == f"{commit}-dirty"


def test_an_archive_says_its_commit_also_within_another_repository(checkout: Path, tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet")
    git(tmp_path, "commit", "--quiet", "--allow-empty", "--message", "another project")
    assert commit_of_testbed(archived(checkout, tmp_path / "unpacked")) == git(checkout, "rev-parse", "--short", "HEAD")


@pytest.mark.parametrize(
    ("argument", "version", "note"),
    [("1a2b3c4d-dirty", "1a2b3c4d-dirty", ""), ("", "unknown", "note: without --build-arg COMMIT=")],
)
def test_an_image_says_what_it_was_built_of(
    argument: str, version: str, note: str, checkout: Path, tmp_path: Path
) -> None:
    # `COPY . .` leaves out the files that .dockerignore names.
    image = tmp_path / "image"
    shutil.copytree(checkout, image, ignore=shutil.ignore_patterns(".git"))
    done = built(image, argument)
    assert (commit_of_testbed(image), done.stderr[: len(note)]) == (version, note)
    assert bool(done.stderr) == bool(note)


def test_an_image_of_an_archive_says_its_commit(checkout: Path, tmp_path: Path) -> None:
    unpacked = archived(checkout, tmp_path / "unpacked")
    assert built(unpacked, "").stderr == ""
    assert commit_of_testbed(unpacked) == git(checkout, "rev-parse", "--short", "HEAD")


def built(folder: Path, commit: str) -> "subprocess.CompletedProcess[str]":
    """Run the Containerfile's command for its argument `commit` in `folder`."""
    step = re.search(r"^ARG COMMIT\nRUN ((?:.*\\\n)*.*)\n", (PROJECT / "Containerfile").read_text(), re.MULTILINE)
    assert step and ".git" in (PROJECT / ".dockerignore").read_text().splitlines()
    environment = {**os.environ, "COMMIT": commit}
    return subprocess.run(
        ["sh", "-c", step[1]], cwd=folder, env=environment, check=True, capture_output=True, text=True
    )


def test_nothing_is_said_where_nothing_is_known(tmp_path: Path) -> None:
    assert commit_of_testbed(tmp_path) == "unknown"
