"""Decides when each test may run, among parallel tests (pytest-xdist) and several sessions on one machine.

A test marked `timing` runs alone, after all others of its session.
"""

import fcntl
import json
import os
from functools import cached_property
from pathlib import Path
from typing import Any

from xdist.scheduler import LoadScopeScheduling

from base.errors import EyelevelError
from measure.host.exclusive import open_shared, shared_folder

# A folder of locks for sessions that a test starts: they must not wait for that test.
VARIABLE = "EYELEVEL_TEST_TURNS"
GROUPS = "groups.json"
TIMING = "timing"

# The files of tests that take longest, the longest first: workers begin them in this order, so that none is still busy
# with one when all others have ended. (`--durations 0` shows what takes long.)
LONGEST = (
    "test_report.py",
    "test_pages.py",
    "test_first_screens.py",
    "test_level_servers.py",
    "test_replay.py",
    "test_end_to_end.py",
    "test_registrations_servers.py",
    "test_registrations_reports.py",
    "test_campaign_changes.py",
    "test_lanes.py",
    "test_film_analysis.py",
    "test_ladder.py",
    "test_report_places.py",
    "test_validate.py",
    "test_packets.py",
    "test_grid.py",
    "test_user_study_session.py",
    "test_page_script.py",
    "test_answer_command.py",
    "test_sessions.py",
    "test_demo.py",
)


class Turns:
    """A lock on the machine: one test marked `timing` has it alone, or any number of others share it.

    The test sessions of all users share the machine. The lock consists of two locks of the kernel (flock(2)), which end
    with the process that holds them. A third one, in the folder of the `session`, is held by each of its processes that
    still has other tests to run.
    """

    def __init__(self, session: Path) -> None:
        self._others = open_shared(session / "others")
        fcntl.flock(self._others, fcntl.LOCK_SH)
        folder = Path(os.environ.get(VARIABLE) or shared_folder())
        self._queue, self._machine = (open_shared(folder / f"eyelevel-tests-{name}") for name in ("queue", "machine"))

    def take(self, alone: bool) -> None:
        """Wait for a turn. All wait in one queue, so nobody overtakes a test that waits for the whole machine."""
        if alone:
            fcntl.flock(self._others, fcntl.LOCK_EX)
        fcntl.flock(self._queue, fcntl.LOCK_EX)
        fcntl.flock(self._machine, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(self._queue, fcntl.LOCK_UN)

    def give_back(self) -> None:
        """End the turn."""
        fcntl.flock(self._machine, fcntl.LOCK_UN)

    def end(self) -> None:
        """Note that this process takes no further turns."""
        for descriptor in (self._others, self._queue, self._machine):
            os.close(descriptor)


def require_folder() -> None:
    """Raise EyelevelError if the folder of locks that the environment names is missing."""
    if (folder := os.environ.get(VARIABLE)) and not Path(folder).is_dir():
        raise EyelevelError(f"{VARIABLE} names {folder}, which is no folder; create it, or unset {VARIABLE}")


def write_groups(folder: Path, groups: dict[str, str]) -> None:
    """Write which tests belong together, by name, for the scheduler; every worker writes the same."""
    part = folder / f"{GROUPS}.{os.getpid()}"
    part.write_text(json.dumps(groups))
    part.replace(folder / GROUPS)


class ModulesScheduling(LoadScopeScheduling):  # type: ignore[misc]  # it brings no types
    """Deals out whole modules, whose tests share fixtures, and each group of tests to one worker.

    (`--dist loadgroup` would do, but pytest-xdist 3.8 finds no groups under pytest 9.2.)
    """

    def __init__(self, config: Any, log: Any, folder: Path) -> None:
        super().__init__(config, log)
        self._folder = folder

    @cached_property
    def _groups(self) -> dict[str, str]:
        groups: dict[str, str] = json.loads((self._folder / GROUPS).read_text())
        return groups

    def _split_scope(self, nodeid: str) -> str:
        return self._groups.get(nodeid) or nodeid.partition("::")[0]
