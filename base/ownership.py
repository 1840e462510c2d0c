"""Files made under sudo are given to the user who called sudo."""

import os
from pathlib import Path


def give_to_caller(path: Path, within: Path | None = None) -> None:
    """Make the user behind sudo the owner of `path` with all that is in it, and of its parents up to `within`."""
    try:
        user, group = int(os.environ["SUDO_UID"]), int(os.environ["SUDO_GID"])
    except (KeyError, ValueError):
        return
    if os.geteuid() != 0:
        return
    inside = path.rglob("*") if path.is_dir() else ()
    above = [parent for parent in path.parents if within and parent.is_relative_to(within)]
    for entry in (path, *inside, *above):
        os.chown(entry, user, group, follow_symlinks=False)
