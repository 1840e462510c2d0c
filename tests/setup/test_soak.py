"""`make soak` logs the result of each run of the suite."""

import csv
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner
from support import soak

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
    pytest_options = ["-n", "1", f"--basetemp={folder / 'temporary'}", str(suite)]
    done = CliRunner().invoke(soak.main, [*options, "--log", str(log), "--", *pytest_options])
    return done.exit_code, [*csv.DictReader(log.read_text().splitlines())] if log.exists() else []


@pytest.mark.slow
def test_each_run_appends_a_line_with_its_failures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak, "BUSY", "exec sleep infinity")  # other tests need the processor
    status, rows = soaked(tmp_path, SUITE, "--times", "2", "--busy", "1")
    assert status == 1
    columns = ("busy_processes", "passed", "failed", "error", "deselected")
    assert [[row[column] for column in columns] for row in rows] == [["1", "1", "1", "0", "1"]] * 2
    assert all(row["failures"].endswith("test_one.py::test_fails") for row in rows)


def test_busy_processes_are_busy_until_the_runs_have_ended() -> None:
    this = psutil.Process()
    before = this.children()
    with soak.busy(2):
        processes = [process for process in this.children() if process not in before]
        assert len(processes) == 2
        while min(process.cpu_times().user for process in processes) < 0.02:
            assert all(process.is_running() for process in processes)
    psutil.wait_procs(processes)
    assert not any(process.is_running() for process in processes)


@pytest.mark.slow
def test_a_run_that_is_interrupted_has_no_line(tmp_path: Path) -> None:
    assert soaked(tmp_path, INTERRUPTED) == (1, [])
