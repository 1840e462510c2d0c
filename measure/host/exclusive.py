"""One measurement at a time on a machine, across all users: two would measure each other's noise.

A campaign that measures several runs at once, in lanes, counts as one measurement: its main process has the lock.

The lock is the kernel's (flock(2)), on a file that all users share; it ends with the process that holds it. The file
may belong to another user, so nothing is written into it: the kernel knows which process has the lock.
"""

import os
import shlex
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from base.errors import EyelevelError
from base.files import lock, lock_holder
from base.text import printable
from measure.host.wakefulness import processors_awake

# An environment variable that names another lock file, so that tests need not wait for a campaign or each other.
VARIABLE = "EYELEVEL_MEASURING_LOCK"
NAME = "eyelevel"
# Folders in which every user may create files. The first is meant for locks, but on some systems only root can write
# there.
SHARED_FOLDERS = (Path("/run/lock"), Path("/dev/shm"))
# The holder may release the lock before the kernel has named it; then try again, at most this many times.
TRIES = 3
COMMAND_LETTERS = 100


@contextmanager
def measuring_alone(activity: str) -> Iterator[None]:
    """Reserve this machine for `activity` ("validating"), and keep its processors awake, until the context or this
    process ends.

    The process that has the lock may start processes that measure, too. Raises EyelevelError when somebody else
    measures: one line that says who does, and since when.
    """
    path = Path(os.environ.get(VARIABLE) or shared_folder() / NAME)
    try:
        descriptor = _locked(path)
    except OSError as error:
        raise EyelevelError(
            f"cannot find out whether somebody measures on this machine: {path}: {error.strerror}; its owner or "
            "an administrator can remove it"
        ) from None
    try:
        if descriptor is None and not _is_above(holder := lock_holder(path)):
            raise EyelevelError(f"{_described(holder)}; {activity} would disturb that: wait until it has ended")
        with processors_awake():
            yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _locked(path: Path) -> int | None:
    """A descriptor of the file at `path`, locked until it is closed; None if another process has the lock. Raises
    OSError."""
    for _ in range(TRIES):
        descriptor = open_shared(path)
        is_locked = lock(descriptor)
        # The file's owner may have removed it meanwhile; then others would lock a new file.
        if is_locked and path.exists() and os.path.samestat(path.stat(), os.fstat(descriptor)):
            return descriptor
        os.close(descriptor)
        if not is_locked and lock_holder(path):
            return None
    return None


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
    """A description of the measuring process `pid`: its user, start and command."""
    try:
        process = psutil.Process(pid or 0)
        since = time.strftime("%Y-%m-%d %H:%M", time.localtime(process.create_time()))
        command = printable(shlex.join(process.cmdline()))
        if len(command) > COMMAND_LETTERS:
            command = f"{command[:COMMAND_LETTERS]}…"
        return f"{process.username()} has been measuring on this machine since {since} (process {pid}: {command})"
    except psutil.Error:  # the process has ended, or this user may not see it
        return "somebody measures on this machine, in a process that cannot be seen from here"
