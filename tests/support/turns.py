"""Who may run when, of tests side by side (pytest-xdist): those marked `alone` run while nothing else does, and those
marked `waits` while nothing else does but others of that mark."""

import fcntl
import json
import os
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from xdist.scheduler import LoadScopeScheduling

GROUPS = "groups.json"

Kind = Literal["alone", "waits", "other"]


class Turns:
    """The machine, which one test has alone, or several that only wait, or several others. All workers of a session
    name the same `folder`."""

    def __init__(self, folder: Path) -> None:
        self._queue, self._waiting, self._others = (
            (folder / name).open("w") for name in ("queue", "waiting", "others")
        )

    def take(self, kind: Kind) -> None:
        """Wait for a turn of this kind, in place of another if there is one. All wait in one queue, so nobody overtakes
        who wants the machine alone; but others come to its end only while none that waits runs."""
        if kind == "other":
            fcntl.flock(self._waiting, fcntl.LOCK_EX)
            fcntl.flock(self._waiting, fcntl.LOCK_UN)
        fcntl.flock(self._queue, fcntl.LOCK_EX)
        fcntl.flock(self._waiting, fcntl.LOCK_SH if kind == "waits" else fcntl.LOCK_EX)
        fcntl.flock(self._others, fcntl.LOCK_SH if kind == "other" else fcntl.LOCK_EX)
        if kind == "waits":
            fcntl.flock(self._others, fcntl.LOCK_UN)
        if kind == "other":
            fcntl.flock(self._waiting, fcntl.LOCK_UN)
        fcntl.flock(self._queue, fcntl.LOCK_UN)

    def give_back(self) -> None:
        fcntl.flock(self._waiting, fcntl.LOCK_UN)
        fcntl.flock(self._others, fcntl.LOCK_UN)


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
