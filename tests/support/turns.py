"""Who may run when, of tests side by side (pytest-xdist): those marked `alone` run while nothing else does."""

import fcntl
import json
import os
from functools import cached_property
from pathlib import Path
from typing import Any

from xdist.scheduler import LoadScopeScheduling

ALONE = "alone.json"


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


def write_alone(folder: Path, names: list[str]) -> None:
    """Keep the names of the tests that must be alone, which every worker finds alike, for the scheduler."""
    part = folder / f"{ALONE}.{os.getpid()}"
    part.write_text(json.dumps(names))
    part.replace(folder / ALONE)


class ModulesScheduling(LoadScopeScheduling):  # type: ignore[misc]  # it brings no types
    """Deals out whole modules, whose tests share fixtures, and all that must be alone to one worker.

    (`--dist loadgroup` would do, but pytest-xdist 3.8 finds no groups under pytest 9.2.)
    """

    def __init__(self, config: Any, log: Any, folder: Path) -> None:
        super().__init__(config, log)
        self._folder = folder

    @cached_property
    def _alone(self) -> frozenset[str]:
        return frozenset(json.loads((self._folder / ALONE).read_text()))

    def _split_scope(self, nodeid: str) -> str:
        return ALONE if nodeid in self._alone else nodeid.partition("::")[0]
