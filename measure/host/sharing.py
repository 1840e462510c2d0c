"""Loads that share processors: while one browser starts, no other load waits for its first paint, and each load knows
how many others were under way.

On a slow network, a load uses a fifth of a core: it mostly waits for packets. So several loads can be made at once on
the same processors, if their busy beginnings do not overlap. Loads that share processors take turns by three files in a
folder. The kernel's locks on the first two (flock(2)) end with the process that holds them:

    start   Each load holds an exclusive lock while its browser starts, and a shared lock from the moment it begins
            until its first paint.
    wanted  Each load holds a shared lock while its browser starts or waits to start. To begin, a load needs an
            exclusive lock while it gets its lock on `start`. So no load begins while a browser starts or
            waits to start. Otherwise one load or another would wait for its first paint most of the time, and no
            browser could start.
    loads   Has a line for each load that begins or ends, with the time.
"""

import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from base.errors import EyelevelError
from measure.host.idle_priority import IdlePriority

START, WANTED, LOADS = "start", "wanted", "loads"
BEGINS, ENDS = "+1", "-1"


class Sharing:
    """A load's view of the loads that share its processors. This class is for a load that has them to itself."""

    is_shared = False
    # The idle priority at which the servers and the browser of the next load start, so that they take only time that no
    # other load needs; None: they start at ordinary priority.
    idle: IdlePriority | None = None
    # Whether the last load started at idle priority; None if it had its processors to itself.
    started_idle: bool | None = None
    # The mean number of loads that were under way during the last load, itself included; None if it did not begin.
    concurrent_loads: float | None = 1.0

    def expect(self) -> None:
        """Another load is to begin."""

    @contextmanager
    def starting(self) -> Iterator[None]:
        """A context in which a browser starts."""
        yield

    @contextmanager
    def painting(self) -> Iterator[None]:
        """A context that begins with a load, and ends with its first paint."""
        yield

    def end(self) -> None:
        """The load is over, if one has begun."""


ALONE = Sharing()


class SharedProcessors(Sharing):
    """A load's view of the loads that take turns by the files in `folder`."""

    is_shared = True

    def __init__(self, folder: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._start, self._wanted, self._loads = folder / START, folder / WANTED, folder / LOADS
        self._clock = clock
        self._began_s: float | None = None

    def expect(self) -> None:
        self.started_idle, self.concurrent_loads = self.idle is not None, None

    @contextmanager
    def starting(self) -> Iterator[None]:
        with _locked(self._wanted, fcntl.LOCK_SH), _locked(self._start, fcntl.LOCK_EX):
            yield

    @contextmanager
    def painting(self) -> Iterator[None]:
        with ExitStack() as until_painted:
            with _locked(self._wanted, fcntl.LOCK_EX):
                until_painted.enter_context(_locked(self._start, fcntl.LOCK_SH))
            self._began_s = self._note(BEGINS)
            yield

    def end(self) -> None:
        if self._began_s is not None:
            began_s, ended_s = self._began_s, self._note(ENDS)
            self._began_s = None
            self.concurrent_loads = mean_number(self._loads.read_text(), began_s, ended_s)

    def _note(self, change: str) -> float:
        at_s = round(self._clock(), 6)  # as in the line
        with self._loads.open("a") as file:
            # One write of a few bytes at the file's end: lines of several processes do not mix (write(2), O_APPEND).
            file.write(f"{at_s:.6f} {change}\n")
        return at_s


def mean_number(log: str, began_s: float, ended_s: float) -> float:
    """The mean number of loads that were under way from `began_s` to `ended_s`, from the lines of LOADS."""
    changes = sorted((float(at_s), int(change)) for at_s, change in map(str.split, log.splitlines()))
    number, since_s, total = 0, began_s, 0.0
    for at_s, change in changes:
        if at_s > ended_s:
            break
        if at_s > since_s:
            total += number * (at_s - since_s)
            since_s = at_s
        number += change
    total += number * (ended_s - since_s)
    return total / (ended_s - began_s) if ended_s > began_s else 1.0


@contextmanager
def _locked(path: Path, kind: int) -> Iterator[None]:
    """Hold a lock of this `kind` on the file at `path`; wait for it. Raises EyelevelError when the file is gone."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise EyelevelError(f"loads cannot share processors: {path}: {error.strerror}; resume the campaign") from None
    try:
        fcntl.flock(descriptor, kind)
        yield
    finally:
        os.close(descriptor)
