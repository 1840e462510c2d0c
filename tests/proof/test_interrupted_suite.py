"""The whole suite, interrupted at random moments, leaves no process, namespace, control group, mount or file behind."""

import os
import random
import re
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest
from support.leaks import GROUPS, MARK, groups_folder, mount_points, pids_marked
from support.shells import all_processes, network_namespaces

from base.errors import EyelevelError
from base.places import PROJECT
from measure.host import idle_priority, quota

# The most tests that have ended when the suite is interrupted.
MOST_TESTS = 300


def control_groups() -> set[Path]:
    try:
        folder = groups_folder()
    except EyelevelError:
        return set()
    return {group for prefix in (GROUPS, quota.PREFIX, idle_priority.PREFIX) for group in folder.glob(f"{prefix}*")}


@pytest.mark.parametrize("seed", range(10))
def test_a_suite_that_is_interrupted_leaves_nothing_behind(seed: int) -> None:
    number = random.Random(seed).randint(1, MOST_TESTS)
    before = network_namespaces(all_processes()), control_groups(), mount_points()
    command = [sys.executable, "-m", "pytest", "-n", "4", "-v", f"--randomly-seed={seed}"]
    with subprocess.Popen(
        command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True
    ) as suite:
        assert suite.stdout
        ended = (line for line in suite.stdout if re.search(r"\b(PASSED|SKIPPED|FAILED|ERROR)\b", line))
        for _ in range(number):
            assert next(ended, None), "the suite ended before it was interrupted"
        (guard,) = (child for child in psutil.Process(suite.pid).children() if "support.leaks" in child.cmdline())
        folder = Path(guard.cmdline()[-1])
        os.killpg(suite.pid, signal.SIGINT)  # like Ctrl-C on a terminal
        suite.stdout.read()
    assert suite.returncode == pytest.ExitCode.INTERRUPTED
    guard.wait()
    assert [*pids_marked(f"{MARK}={folder}")] == []
    assert not folder.exists()
    assert network_namespaces(all_processes()) <= before[0]
    assert (control_groups(), mount_points()) == before[1:]
