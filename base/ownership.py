"""Gives files made under sudo to the user who called sudo."""

import os
import stat
from contextlib import suppress
from pathlib import Path


def give_to_caller(path: Path, within: Path | None = None) -> None:
    """Make the user who called sudo the owner of `path`, of everything in it, and of its parents up to `within`.

    Only folders and files that root made there change their owner. Files of other users keep theirs, and so do files
    with a second name (a hard link), which may be system files.
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
    # Check and change the file through one descriptor, since the user may replace it in the meantime.
    descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW)
    try:
        status = os.fstat(descriptor)
        is_ours = stat.S_ISDIR(status.st_mode) or (stat.S_ISREG(status.st_mode) and status.st_nlink == 1)
        if is_ours and status.st_uid == 0:
            os.chown(f"/proc/self/fd/{descriptor}", user, group)
    finally:
        os.close(descriptor)
