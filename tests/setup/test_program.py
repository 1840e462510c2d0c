"""The program `eyelevel` runs the checkout in which it is started, and reports which one it runs if this is unclear."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from base.places import PROJECT

STEP = ". setup/common.sh; . setup/steps/9-program.sh; {}"
# Prints the name of its checkout, and its arguments.
PROGRAM = "import sys\nfrom pathlib import Path\nprint(Path(__file__).parents[1].name, *sys.argv[1:])\n"


def step(checkout: Path, cache: Path, command: str) -> int:
    environment = os.environ | {"EYELEVEL_CACHE": str(cache)}
    script = f"set -euo pipefail; {STEP.format(command)}"
    return subprocess.run(["bash", "-c", script], cwd=checkout, env=environment, check=False).returncode


@pytest.fixture
def checkouts(tmp_path: Path) -> list[Path]:
    """Two checkouts that share one cache; the first was set up first."""
    (tmp_path / "cache/venv/bin").mkdir(parents=True)
    (tmp_path / "cache/venv/bin/python").symlink_to(sys.executable)
    checkouts = [tmp_path / "first", tmp_path / "second"]
    for checkout in checkouts:
        (checkout / "eyelevel").mkdir(parents=True)
        shutil.copytree(PROJECT / "setup", checkout / "setup")
        (checkout / "eyelevel/__init__.py").touch()
        for name in ("__main__", "program"):
            (checkout / f"eyelevel/{name}.py").write_text(PROGRAM)
        assert step(checkout, tmp_path / "cache", "present") != 0
        assert step(checkout, tmp_path / "cache", "act && present") == 0
    return checkouts


def eyelevel(folder: Path, cache: Path, *arguments: str) -> tuple[str, str, int]:
    command: list[str | Path] = [cache / "bin/eyelevel", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return done.stdout, done.stderr, done.returncode


def test_it_runs_the_checkout_it_is_started_in_whichever_was_set_up_last(checkouts: list[Path], tmp_path: Path) -> None:
    for checkout in checkouts:
        assert step(checkout, tmp_path / "cache", "present") == 0
        (checkout / "results/a b").mkdir(parents=True)
        for folder in (checkout, checkout / "results/a b"):
            assert eyelevel(folder, tmp_path / "cache", "a b", "c") == (f"{checkout.name} a b c\n", "", 0)


def test_a_checkout_on_pythonpath_is_not_run(
    checkouts: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(checkouts[0]))
    assert eyelevel(checkouts[1], tmp_path / "cache")[0] == "second\n"


def test_elsewhere_it_says_which_of_several_it_runs(checkouts: list[Path], tmp_path: Path) -> None:
    stdout, stderr, _ = eyelevel(tmp_path, tmp_path / "cache")
    assert stdout == "first\n" and stderr.startswith(f"eyelevel: running {checkouts[0]}, the first of several")
    shutil.rmtree(checkouts[0])
    assert eyelevel(tmp_path, tmp_path / "cache") == ("second\n", "", 0)
    shutil.rmtree(checkouts[1])
    stdout, stderr, status = eyelevel(tmp_path, tmp_path / "cache")
    assert (stdout, status) == ("", 1) and stderr.startswith("eyelevel: no checkout") and stderr.count("\n") == 1


def test_a_folder_that_was_not_set_up_is_no_checkout_whatever_it_holds(checkouts: list[Path], tmp_path: Path) -> None:
    shutil.copytree(checkouts[1], tmp_path / "foreign")
    shutil.rmtree(checkouts[1])
    assert eyelevel(tmp_path / "foreign", tmp_path / "cache") == ("first\n", "", 0)


def test_an_interrupted_step_leaves_the_program_that_was_there(checkouts: list[Path], tmp_path: Path) -> None:
    before = (tmp_path / "cache/bin/eyelevel").read_bytes()
    assert step(checkouts[0], tmp_path / "cache", "mv() { return 1; }; act") != 0
    assert (tmp_path / "cache/bin/eyelevel").read_bytes() == before
