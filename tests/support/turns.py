"""Who may run when, of tests side by side (pytest-xdist): those marked `alone` run while nothing else does."""

import fcntl
import json
import os
from functools import cached_property
from pathlib import Path
from typing import Any

from xdist.scheduler import LoadScopeScheduling

GROUPS = "groups.json"


class Turns:
    """The machine, which many tests share, or one has alone. All workers of a session name the same `folder`."""

    def __init__(self, folder: Path) -> None:
        self._queue = (folder / "queue").open("w")
        self._machine = (folder / "machine").open("w")

    def take(self, *, alone: bool) -> None:
        """Wait for the machine. Who waits for it alone is not overtaken: the others queue behind."""
        fcntl.flock(self._queue, fcntl.LOCK_EX)
        fcntl.flock(self._machine, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        fcntl.flock(self._queue, fcntl.LOCK_UN)

    def give_back(self) -> None:
        fcntl.flock(self._machine, fcntl.LOCK_UN)


def write_groups(folder: Path, groups: dict[str, str]) -> None:
    """Keep which tests belong together, by name, for the scheduler; every worker writes the same."""
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
