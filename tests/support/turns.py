"""Who may run when, of tests side by side (pytest-xdist): those marked `alone` run while nothing else does."""

import fcntl
from pathlib import Path


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
