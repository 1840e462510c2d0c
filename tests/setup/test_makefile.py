"""Make's variables reach programs unchanged, and nothing else does; the part that needs root passes on no secrets."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from base.namespaces import AS_ORDINARY_USER
from base.places import PROJECT

# Stands in for Python: prints its arguments and its environment.
WITNESS = f"#!{sys.executable}\nimport json, os, sys\nprint(json.dumps([sys.argv[1:], dict(os.environ)]))\n"
TEXTS = (
    "a b$c'd",
    "two  blanks  ",
    "a$(shell touch pwned)",
    "${HOME}$$(HOME)",
    "x';touch pwned;'.har",
    '"; touch pwned; "',
    "`touch pwned`$((1))\\",
    "a, b) #c %d ~ *: =",
    "\u00e9\u4e16",
)


def run(folder: Path, *arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
    """Run the project's `make -o setup` in an otherwise empty folder, with only this `environment`."""
    (folder / "project").mkdir(exist_ok=True)
    (folder / "witness").write_text(WITNESS)
    (folder / "witness").chmod(0o755)
    for name in ("Makefile", "setup"):
        if not (target := folder / "project" / name).exists():
            target.symlink_to(PROJECT / name)
    return subprocess.run(
        ["make", "-o", "setup", *arguments],
        cwd=folder / "project",
        env={"PATH": os.environ["PATH"], "HOME": str(folder), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def called(folder: Path, *arguments: str, **environment: str) -> tuple[list[str], dict[str, str]]:
    """The arguments and the environment of the first of our programs that `make` runs."""
    done = run(folder, f"PYTHON={folder / 'witness'}", *arguments, **environment)
    assert done.returncode == 0, done.stderr
    words, variables = json.loads(next(line for line in done.stdout.splitlines() if line.startswith("[")))
    assert not list(folder.rglob("pwned"))
    return words, variables


def ours(words: list[str]) -> list[str]:
    """`words` without the first one, which stands in for Python."""
    return [word for word in words if not word.startswith("PYTHON=")]


@pytest.mark.parametrize("text", TEXTS)
def test_a_variable_reaches_its_program_as_it_was_given(tmp_path: Path, text: str) -> None:
    words, environment = called(tmp_path, "import", f"FROM={text}")
    assert ours(words) == ["-m", "eyelevel.make", "import", "import", f"FROM={text}"]
    assert environment["FROM"] == text
    words, _ = called(tmp_path, "campaign", f"NET={text}", "SITES=a,b", f"DEPTH={text}")
    assert words[:4] == ["-m", "eyelevel.make", "campaign", "campaign"]
    assert sorted(ours(words)[4:]) == sorted([f"NET={text}", "SITES=a,b", f"DEPTH={text}"])


@pytest.mark.parametrize("text", [*TEXTS[:5], "7"])
def test_short_names_in_the_environment_are_not_ours(tmp_path: Path, text: str) -> None:
    names = ("NET", "SITES", "SITE", "RUNS", "MAX_RUNS", "SEED", "CAMPAIGN", "LIMIT", "FROM", "TUNING", "REPEATABLE")
    others = dict.fromkeys(names, text)
    words = ["-m", "eyelevel.make", "campaign", "campaign", "PROTO=tcp"]
    assert ours(called(tmp_path, "campaign", "PROTO=tcp", **others)[0]) == words
    commands = run(tmp_path, "-n", "test", PYTHON=text, EYELEVEL_CACHE="/cache").stdout
    assert "'/cache/venv/bin/python' -m pytest" in commands
    done = run(tmp_path, "import", FROM=text)
    assert done.returncode and "import needs FROM, as in: make import FROM=" in done.stderr


def test_the_program_prints_its_commands_where_make_does_nothing(tmp_path: Path) -> None:
    assert called(tmp_path, "-n", "report", "CAMPAIGN=c")[0][1:4] == ["eyelevel.make", "--print", "report"]
    assert called(tmp_path, "--no-print-directory", "report", "CAMPAIGN=c")[0][1:4] == [
        "eyelevel.make",
        "report",
        "report",
    ]


def test_what_is_given_to_make_is_not_given_to_what_its_programs_make(tmp_path: Path) -> None:
    _, environment = called(tmp_path, "validate", "NET=lte", f"EYELEVEL_CACHE={tmp_path}")
    assert "NET" not in environment["MAKEFLAGS"] and "EYELEVEL_CACHE" not in environment["MAKEFLAGS"]


@pytest.mark.parametrize("text", ["caches/mine", "with a blank$x"])
def test_folders_on_the_command_line_are_absolute_and_whole(tmp_path: Path, text: str) -> None:
    _, environment = called(tmp_path, "status", "CAMPAIGN=c", f"EYELEVEL_CACHE={text}")
    assert environment["EYELEVEL_CACHE"] == f"{tmp_path / 'project'}/{text}"
    _, environment = called(tmp_path, "status", "CAMPAIGN=c", f"EYELEVEL_CACHE=/{text}")
    assert environment["EYELEVEL_CACHE"] == f"/{text}"
    _, environment = called(tmp_path, "status", "CAMPAIGN=c", HOME=f"/{text}")
    assert environment["EYELEVEL_CACHE"] == f"/{text}/.cache/eyelevel"


@pytest.mark.parametrize("value", ["", "  "])
def test_an_empty_value_is_refused_in_one_line_except_that_of_a_proxy(tmp_path: Path, value: str) -> None:
    done = run(tmp_path, "campaign", f"NET={value}")
    assert done.returncode
    assert [line.partition("*** ")[2] for line in done.stderr.splitlines()] == [
        "NET is empty; give it a value, or leave it out.  Stop."
    ]
    assert "https_proxy=" in called(tmp_path, "campaign", "https_proxy=")[0]


def test_a_value_of_two_lines_is_refused(tmp_path: Path) -> None:
    done = run(tmp_path, "import", "FROM=a\ntouch pwned")
    assert done.returncode and "the value of FROM has a line break" in done.stderr


def test_a_cache_whose_name_has_blanks_is_refused_before_anything_is_done(tmp_path: Path) -> None:
    done = subprocess.run(
        [PROJECT / "setup" / "setup.sh"],
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path / "a home")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.startswith(f"eyelevel: the cache cannot be in '{tmp_path}/a home/.cache/eyelevel', whose name")
    assert len(done.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_only_the_set_up_of_packages_asks_for_root() -> None:
    commands = (PROJECT / "Makefile").read_text()
    assert "as-root" not in commands and "sudo" not in commands


@pytest.mark.needs_user_namespaces
@pytest.mark.parametrize("secret", ["http://user:s3cret@proxy:3128", "x'; touch pwned; '$(touch pwned)"])
def test_what_runs_as_root_has_the_proxys_password_and_no_command_line_does(tmp_path: Path, secret: str) -> None:
    # Like sudo, it clears the environment and keeps the command line, which everybody can see.
    sudo = ["#!/bin/bash", "[[ $1 != --* ]] || exit 0", f'printf "%s\\n" "$@" >{tmp_path}/seen']
    (tmp_path / "sudo").write_text("\n".join([*sudo, 'exec env --ignore-environment "$@"', ""]))
    (tmp_path / "sudo").chmod(0o755)
    (tmp_path / "temporary").mkdir()
    done = subprocess.run(
        [*AS_ORDINARY_USER, PROJECT / "setup" / "as-root", "printenv", "https_proxy", "EYELEVEL_CACHE"],
        env={
            **os.environ,
            "PATH": f"{tmp_path}:{os.environ['PATH']}",
            "TMPDIR": str(tmp_path / "temporary"),
            "https_proxy": secret,
            "EYELEVEL_CACHE": "/some/where",
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.splitlines() == [secret, "/some/where"], done.stderr
    assert secret not in (tmp_path / "seen").read_text()
    assert list((tmp_path / "temporary").iterdir()) == []
    assert not (tmp_path / "pwned").exists()
