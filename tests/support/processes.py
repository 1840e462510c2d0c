"""The processes that descend from one, and their end."""

import os
import select
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from support.leaks import OF_SESSION

# On a slow machine a browser has taken more than a minute to start. A test's own limit is longer.
PATIENCE_S = 240
LOOK_S = 0.05


def descendants(pid: int) -> list[tuple[int, str]]:
    """The processes below `pid`, with their names, except those of the test session itself and below these."""
    children: dict[int, list[int]] = {}
    names: dict[int, str] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                name, _, rest = (entry / "stat").read_text().partition("(")[2].rpartition(")")
            except OSError:
                continue
            children.setdefault(int(rest.split()[1]), []).append(int(entry.name))
            names[int(entry.name)] = name
    descendants, parents = [], [pid]
    while parents:
        for child in {*children.get(parents.pop(), ())} - OF_SESSION:
            descendants.append((child, names[child]))
            parents.append(child)
    return descendants


def awaited_descendants(pid: int, is_there: Callable[[list[str]], bool]) -> list[tuple[int, str]]:
    """The processes below `pid`, with their names, as soon as `is_there` accepts the names."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        below = descendants(pid)
        if is_there([name for _, name in below]):
            return below
        assert time.monotonic() < deadline, f"there are only {below}"
        time.sleep(LOOK_S)


def still_there(pids: Iterable[int], timeout_s: float = PATIENCE_S) -> list[int]:
    """The processes that do not end within `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    present = []
    for pid in pids:
        try:
            descriptor = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            if not select.select([descriptor], [], [], max(0, deadline - time.monotonic()))[0]:
                present.append(pid)
        finally:
            os.close(descriptor)
    return present
