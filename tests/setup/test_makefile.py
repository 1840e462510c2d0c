"""Make's variables reach programs as they were given, and nothing else does; root's part passes no secret on."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from base.namespaces import AS_ORDINARY_USER
from base.places import PROJECT

# In the place of Python: says what it was called with.
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
    """Run `make -o setup` of the project, in a folder with nothing else, with `environment` and not ours."""
    (folder / "project" / "studies").mkdir(parents=True, exist_ok=True)
    (folder / "witness").write_text(WITNESS)
    (folder / "witness").chmod(0o755)
    for name in ("Makefile", "studies/grid", "setup"):
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
    """The arguments and the environment of the first program of ours that `make` runs."""
    done = run(folder, f"PYTHON={folder / 'witness'}", *arguments, **environment)
    assert done.returncode == 0, done.stderr
    words, variables = json.loads(done.stdout.splitlines()[0])
    assert not list(folder.rglob("pwned"))
    return words, variables


@pytest.mark.parametrize("text", TEXTS)
def test_a_variable_reaches_its_program_as_it_was_given(tmp_path: Path, text: str) -> None:
    words, environment = called(tmp_path, "import", f"FROM={text}")
    assert words == ["-m", "eyelevel", "import", text]
    assert environment["FROM"] == text
    words, _ = called(tmp_path, "campaign", f"NET={text}", "SITES=a,b", f"CAMPAIGN={text}")
    assert words == ["-m", "eyelevel", "campaign", "--net", text, "--sites", "a,b", "--campaign", text]
    words, _ = called(tmp_path, "waterfall", f"RUN={text}", f"CAMPAIGN={text}")
    assert words == ["-m", "eyelevel", "waterfall", "--run", text, text]
    words, _ = called(tmp_path, "user-study", f"STUDY={text}", f"CAMPAIGN={text}")
    assert words == ["-m", "eyelevel", "user-study", "write", "--study", text, text]
    words, _ = called(tmp_path, "grid", f"SITE={text}", f"DEPTH={text}")
    assert words == ["-m", "eyelevel", "grid", "--site", text, "--depth", text]


@pytest.mark.parametrize("text", [*TEXTS[:5], "7"])
def test_short_names_in_the_environment_are_not_ours(tmp_path: Path, text: str) -> None:
    names = ("NET", "SITES", "SITE", "RUNS", "MAX_RUNS", "SEED", "CAMPAIGN", "LIMIT", "FROM", "TUNING", "REPEATABLE")
    others = dict.fromkeys(names, text)
    assert called(tmp_path, "campaign", "PROTO=tcp", **others)[0] == ["-m", "eyelevel", "campaign", "--proto", "tcp"]
    assert called(tmp_path, "grid", **others)[0] == ["-m", "eyelevel", "grid"]
    commands = run(tmp_path, "-n", "site-info", PYTHON=text, EYELEVEL_CACHE="/cache").stdout
    assert "'/cache/venv/bin/python' -m eyelevel" in commands
    done = run(tmp_path, "import", FROM=text)
    assert done.returncode and "import needs FROM" in done.stderr


def test_a_variable_that_a_command_does_not_have_is_its_to_refuse(tmp_path: Path) -> None:
    assert called(tmp_path, "campaign", "RUN=3")[0] == ["-m", "eyelevel", "campaign", "--run", "3"]
    assert called(tmp_path, "campaign", "REPEATABLE=no")[0] == ["-m", "eyelevel", "campaign", "--as-recorded"]


@pytest.mark.parametrize("command", ["record", "close"])
@pytest.mark.parametrize(("value", "option"), [("yes", ["--allow-private"]), ("no", [])])
def test_private_addresses_are_reached_when_it_is_said(
    tmp_path: Path, command: str, value: str, option: list[str]
) -> None:
    words, _ = called(tmp_path, command, f"ALLOW_PRIVATE={value}", "SITES=a")
    assert words == ["-m", "eyelevel", command, *option, "a"]
    words, _ = called(tmp_path, command, "SITES=a", ALLOW_PRIVATE="yes")
    assert words == ["-m", "eyelevel", command, "a"], "not from the environment"


@pytest.mark.parametrize("target", ["campaign", "grid"])
def test_consent_that_was_given_beforehand_reaches_campaigns_and_studies(tmp_path: Path, target: str) -> None:
    assert called(tmp_path, target, "YES=1")[0] == ["-m", "eyelevel", target, "--yes"]


def test_what_is_given_to_make_is_not_given_to_what_its_programs_make(tmp_path: Path) -> None:
    _, environment = called(tmp_path, "validate", "NET=lte", f"EYELEVEL_CACHE={tmp_path}")
    assert "NET" not in environment["MAKEFLAGS"] and "EYELEVEL_CACHE" not in environment["MAKEFLAGS"]


@pytest.mark.parametrize("text", ["caches/mine", "with a blank$x"])
def test_folders_on_the_command_line_are_absolute_and_whole(tmp_path: Path, text: str) -> None:
    _, environment = called(tmp_path, "status", "CAMPAIGN=c", f"EYELEVEL_CACHE={text}", f"TUNING={text}")
    expected = f"{tmp_path / 'project'}/{text}"
    assert (environment["EYELEVEL_CACHE"], environment["EYELEVEL_TUNING"]) == (expected, expected)
    _, environment = called(tmp_path, "status", "CAMPAIGN=c", f"EYELEVEL_CACHE=/{text}", EYELEVEL_TUNING=f"/{text}")
    assert (environment["EYELEVEL_CACHE"], environment["EYELEVEL_TUNING"]) == (f"/{text}", f"/{text}")
    _, environment = called(tmp_path, "status", "CAMPAIGN=c", HOME=f"/{text}")
    assert environment["EYELEVEL_CACHE"] == f"/{text}/.cache/eyelevel"


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
    # Like sudo it drops the environment and keeps the command line, which everybody sees.
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
