"""`make soak` logs the result of each run of the suite."""

import csv
import os
import subprocess
import sys
from pathlib import Path

import pytest

from base.places import PROJECT


@pytest.mark.slow
def test_each_run_appends_a_line_with_its_failures(tmp_path: Path) -> None:
    suite = tmp_path / "test_one.py"
    suite.write_text("def test_passes():\n    pass\n\n\ndef test_fails():\n    assert False\n")
    command = [sys.executable, "-m", "support.soak", "--times", "2", "--busy", "1", "--log", str(tmp_path / "log.csv")]
    environment = os.environ | {"PYTHONPATH": f"{PROJECT}:{PROJECT / 'tests'}"}
    options = ["-n", "1", f"--basetemp={tmp_path / 'temporary'}", str(suite)]
    done = subprocess.run([*command, "--", *options], env=environment, check=False)
    with (tmp_path / "log.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert done.returncode == 1
    columns = ("busy_processes", "passed", "failed", "error")
    assert [[row[column] for column in columns] for row in rows] == [["1", "1", "1", "0"]] * 2
    assert all(row["failures"].endswith("test_one.py::test_fails") for row in rows)
