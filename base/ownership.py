"""Files made under sudo are given to the user who called sudo."""

import os
import stat
from contextlib import suppress
from pathlib import Path


def give_to_caller(path: Path, within: Path | None = None) -> None:
    """Make the user behind sudo the owner of `path` with all that is in it, and of its parents up to `within`.

    That is of the folders and files that root made there: what is another user's stays theirs, and so does what has a
    second name (a hard link), since it may be a file of the system.
    """
    try:
        user, group = int(os.environ["SUDO_UID"]), int(os.environ["SUDO_GID"])
    except (KeyError, ValueError):
        return
    if os.geteuid() != 0:
        return
    inside = path.rglob("*") if path.is_dir() else ()
    above = [parent for parent in path.parents if within and parent.is_relative_to(within)]
    for entry in (path, *inside, *above):
        with suppress(FileNotFoundError):
            _give(entry, user, group)


def _give(path: Path, user: int, group: int) -> None:
    # The file that is examined is the file that changes hands, whatever the user puts in its place meanwhile.
    descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW)
    try:
        status = os.fstat(descriptor)
        is_ours = stat.S_ISDIR(status.st_mode) or (stat.S_ISREG(status.st_mode) and status.st_nlink == 1)
        if is_ours and status.st_uid == 0:
            os.chown(f"/proc/self/fd/{descriptor}", user, group)
    finally:
        os.close(descriptor)
