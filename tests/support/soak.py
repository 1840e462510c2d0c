"""`make soak`: run the test suite repeatedly, idle or next to busy processes, and log the result of each run.

Each run appends a line to the log, so runs can be spread over days and machines. Next to busy processes, the timing
tests are left out and counted.
"""

import csv
import os
import subprocess
import sys
import time
import timeit
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import pytest

from base.places import PROJECT, tool

LOG = PROJECT / "docs" / "contributors" / "soak.csv"
# These variables pass to a run the path of the log, the number of busy processes, and the machine's speed.
LOG_VARIABLE, BUSY_VARIABLE, SPEED_VARIABLE = "EYELEVEL_SOAK_LOG", "EYELEVEL_SOAK_BUSY", "EYELEVEL_SOAK_LOOPS_PER_US"
COUNTS = ("passed", "failed", "error", "skipped")
DESELECTED = "deselected"
COLUMNS = (
    "begin",
    "commit",
    "busy_processes",
    "load_before",
    "loops_per_us",
    "seed",
    "seconds",
    *COUNTS,
    DESELECTED,
    "retried",
    "failures",
)

BUSY = "while :; do :; done"
_begin = time.monotonic()
_load = os.getloadavg()[0]
# Each worker selects among all tests; a session without workers selects by itself.
_deselected = 0


def pytest_deselected(items: list[pytest.Item]) -> None:
    """Count the tests that are left out."""
    global _deselected
    _deselected += len(items)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Send a worker's count to the session."""
    if output := getattr(session.config, "workeroutput", None):
        output[DESELECTED] = _deselected


@pytest.hookimpl(optionalhook=True)  # only xdist has this hook
def pytest_testnodedown(node: Any) -> None:
    """Take over the count of a worker that ends."""
    global _deselected
    _deselected = max(_deselected, getattr(node, "workeroutput", {}).get(DESELECTED, 0))


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, exitstatus: pytest.ExitCode, config: pytest.Config
) -> None:
    """Append this run to the log."""
    # A worker sees only a part of the run, and an interrupted run has no result.
    if hasattr(config, "workerinput") or exitstatus == pytest.ExitCode.INTERRUPTED:
        return
    stats = terminalreporter.stats
    failures = sorted({report.nodeid for kind in ("failed", "error") for report in stats.get(kind, ())})
    seconds = time.monotonic() - _begin
    row = {
        "begin": datetime.fromtimestamp(time.time() - seconds, UTC).isoformat(timespec="seconds"),
        "commit": commit(),
        "busy_processes": os.environ[BUSY_VARIABLE],
        "load_before": f"{_load:.2f}",
        "loops_per_us": os.environ[SPEED_VARIABLE],
        "seed": config.getoption("randomly_seed"),
        "seconds": round(seconds),
        **{kind: len(stats.get(kind, ())) for kind in COUNTS},
        DESELECTED: _deselected,
        "retried": " ".join(sorted({report.nodeid for report in stats.get("rerun", ())})),
        "failures": " ".join(failures),
    }
    log = Path(os.environ[LOG_VARIABLE])
    is_new = not log.exists()
    with log.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        if is_new:
            writer.writeheader()
        writer.writerow(row)


def commit() -> str:
    """The tested commit, with a + if files have changed."""
    git = ["git", "-C", str(PROJECT), "describe", "--always", "--dirty=+", "--abbrev=8", "--exclude=*"]
    return subprocess.run(git, capture_output=True, text=True, check=True).stdout.strip()


def loops_per_us() -> float:
    """How fast this machine runs an empty Python loop: the time of a suite is inversely proportional to it."""
    number = 1_000_000
    return number / min(timeit.repeat(number=number, repeat=10)) / 1e6


@contextmanager
def busy(count: int) -> Iterator[None]:
    """Keep `count` processes of normal priority busy for the duration of the block, or until this process ends."""
    with ExitStack() as ends:
        for _ in range(count):
            command: list[str | Path] = [tool("setpriv"), "--pdeathsig", "KILL", "sh", "-c", BUSY]
            process = ends.enter_context(subprocess.Popen(command, start_new_session=True))
            ends.callback(process.kill)
        yield


@click.command()
@click.option("--times", default=1, show_default=True, help="How many runs.")
@click.option("--busy", "count", default=0, show_default=True, help="How many busy processes run beside the suite.")
@click.option("--log", type=click.Path(path_type=Path), default=LOG, help="Where each run is a line.")
@click.argument("options", nargs=-1, type=click.UNPROCESSED)
def main(times: int, count: int, log: Path, options: tuple[str, ...]) -> None:
    """Run the suite several times, with further OPTIONS of pytest's; exits with 1 if a run failed.

    Example: python -m support.soak --times 10 --busy 2
    """
    command = [sys.executable, "-m", "pytest", "-n", "4", "-p", "support.soak", *options]
    if count:
        command += ["-m", "not timing"]
    environment = os.environ | {
        LOG_VARIABLE: str(log.absolute()),
        BUSY_VARIABLE: str(count),
        SPEED_VARIABLE: f"{loops_per_us():.1f}",
        "PYTHONPATH": f"{PROJECT}:{PROJECT / 'tests'}",
    }
    statuses = []
    with busy(count):
        for number in range(1, times + 1):
            click.echo(f"run {number} of {times}, beside {count} busy processes")
            statuses.append(subprocess.run(command, env=environment, cwd=PROJECT, check=False).returncode)
    click.echo(f"{statuses.count(0)} of {times} runs passed; {log} has a line for each")
    sys.exit(any(statuses))


if __name__ == "__main__":
    main()
