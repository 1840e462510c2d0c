"""`make soak` logs the result of each run of the suite."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

from base.places import PROJECT

SUITE = """
import pytest

def test_passes():
    pass

def test_fails():
    assert False

@pytest.mark.timing
def test_is_timely():
    pass
"""
INTERRUPTED = "def test_is_interrupted():\n    raise KeyboardInterrupt\n"


def soaked(folder: Path, tests: str, *options: str) -> tuple[int, list[dict[str, str]]]:
    """The exit status of `make soak` on these tests, and the lines of its log."""
    suite, log = folder / "test_one.py", folder / "log.csv"
    suite.write_text(tests)
    command = [sys.executable, "-m", "support.soak", *options, "--log", str(log)]
    environment = os.environ | {"PYTHONPATH": f"{PROJECT}:{PROJECT / 'tests'}"}
    pytest_options = ["-n", "1", f"--basetemp={folder / 'temporary'}", str(suite)]
    done = subprocess.run([*command, "--", *pytest_options], env=environment, check=False)
    return done.returncode, [*csv.DictReader(log.read_text().splitlines())] if log.exists() else []


@pytest.mark.slow
def test_each_run_appends_a_line_with_its_failures(tmp_path: Path) -> None:
    status, rows = soaked(tmp_path, SUITE, "--times", "2", "--busy", "1")
    assert status == 1
    columns = ("busy_processes", "passed", "failed", "error", "deselected")
    assert [[row[column] for column in columns] for row in rows] == [["1", "1", "1", "0", "1"]] * 2
    assert all(row["failures"].endswith("test_one.py::test_fails") for row in rows)


@pytest.mark.slow
def test_a_run_that_is_interrupted_has_no_line(tmp_path: Path) -> None:
    assert soaked(tmp_path, INTERRUPTED) == (1, [])
