"""One measurement at a time on a machine, across all users: two would measure each other's noise.

A campaign that measures several runs at once, in lanes, counts as one measurement: its main process has the lock.

The lock is the kernel's (flock(2)), on a file that all users share; it ends with the process that holds it. The file
may belong to another user, so nothing is written into it: the kernel knows which process has the lock.
"""

import os
import shlex
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from base.errors import EyelevelError
from base.files import lock, lock_holder
from base.text import printable
from base.words import in_words
from measure.host.wakefulness import processors_awake

# An environment variable that names another lock file, so that tests need not wait for a campaign or each other.
VARIABLE = "EYELEVEL_MEASURING_LOCK"
NAME = "eyelevel"
# Folders in which every user may create files. The first is meant for locks, but on some systems only root can write
# there.
SHARED_FOLDERS = (Path("/run/lock"), Path("/dev/shm"))
COMMAND_LETTERS = 300


@contextmanager
def measuring_alone(left_s: Callable[[int], float | None] = lambda _: None) -> Iterator[None]:
    """Reserve this machine for a measurement, and keep its processors awake, until the context or this process ends.

    While another process measures, wait for it, and print one line that says who does, from where, since when, and how
    long it still takes (`left_s` of the process), if known. The processes that the one with the lock starts may
    measure, too. Raises EyelevelError when the lock cannot be used.
    """
    path = Path(os.environ.get(VARIABLE) or shared_folder() / NAME)
    try:
        descriptor = _locked(path, left_s)
    except OSError as error:
        raise EyelevelError(
            f"cannot determine whether a measurement runs on this machine: {path}: {error.strerror}; its owner or "
            "an administrator can remove it"
        ) from None
    try:
        with processors_awake():
            yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _locked(path: Path, left_s: Callable[[int], float | None]) -> int | None:
    """A descriptor of the file at `path`, locked until it is closed; None if this process or one of its ancestors has
    the lock. Raises OSError."""
    while True:
        descriptor = open_shared(path)
        if not lock(descriptor):
            if _is_above(holder := lock_holder(path)):
                os.close(descriptor)
                return None
            time_s = None if holder is None else left_s(holder)
            how_long = (
                "how long is not known" if time_s is None else f"its runs take at most about {in_words(time_s)} more"
            )
            print(f"waiting for {_described(holder)}; {how_long}; Ctrl-C ends the wait", file=sys.stderr, flush=True)
            lock(descriptor, wait=True)
        # The file's owner may have removed it meanwhile; then others would lock a new file.
        if path.exists() and os.path.samestat(path.stat(), os.fstat(descriptor)):
            return descriptor
        os.close(descriptor)


def open_shared(path: Path) -> int:
    """A descriptor of the file at `path`, which all users can lock; creates the file if it is missing. Raises
    OSError."""
    # In a shared folder, the path may be another user's link or pipe: do not follow a link, and do not wait for a pipe.
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK
    if not path.exists():
        # O_CREAT only for a missing file: with it, the kernel may refuse other users' files (fs.protected_regular).
        with suppress(FileExistsError):
            descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o444)
            os.fchmod(descriptor, 0o444)  # for all users, regardless of our umask
            return descriptor
    return os.open(path, flags)


def shared_folder() -> Path:
    """The folder for the machine's locks, the same for all users. Raises EyelevelError when there is none."""
    for folder in SHARED_FOLDERS:
        if folder.is_dir() and folder.stat().st_mode & (every := stat.S_ISVTX | stat.S_IWOTH) == every:
            return folder
    raise EyelevelError(f"none of {', '.join(map(str, SHARED_FOLDERS))} is a folder for files of all users (mode 1777)")


def _is_above(pid: int | None) -> bool:
    """Whether `pid` is this process or one of its ancestors."""
    return pid == os.getpid() or pid in [parent.pid for parent in psutil.Process().parents()]


def _described(pid: int | None) -> str:
    """A description of the measurement by the process `pid`: its user, start, folder and command."""
    try:
        process = psutil.Process(pid or 0)
        since = time.strftime("on %Y-%m-%d at %H:%M", time.localtime(process.create_time()))
        with suppress(psutil.AccessDenied):  # only root may ask where another user's process runs
            since += f" in {printable(process.cwd())}"
        command = printable(shlex.join(process.cmdline()))
        if len(command) > COMMAND_LETTERS:
            command = f"{command[:COMMAND_LETTERS]}…"
        return f"the measurement that {process.username()} began {since} (process {pid}: {command})"
    except psutil.Error:  # the process has ended, or this user may not see it
        return "a measurement in a process that cannot be seen from here"
