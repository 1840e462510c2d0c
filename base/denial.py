"""Explains which action on which file the system denied."""

import os
import traceback
from pathlib import Path

# The action that each right permits on a file, as a participle.
ACTIONS = {os.R_OK: "read", os.W_OK: "written"}
# The functions of `subprocess` that start a program; Python 3.13 uses the second if possible.
STARTERS = ("_execute_child", "_posix_spawn")


def denial(error: PermissionError) -> str | None:
    """The denied action: "/x/file may not be written (Permission denied)"; None when `error` concerns no file.

    The exception does not contain the action, so this finds an action that is denied to this process on the named file.
    """
    if not isinstance(error.filename, str | bytes | os.PathLike):
        return None
    path = Path(os.fsdecode(error.filename))
    place = traceback.extract_tb(error.__traceback__)[-1:]
    # In an error of subprocess, the file name is either the program or the working folder.
    if place and place[0].name in STARTERS and not path.is_dir():
        return f"{path} may not be run ({error.strerror})"
    return f"{_fault(path)} ({error.strerror})"


def _fault(path: Path) -> str:
    folder = next(parent for parent in path.absolute().parents if os.path.lexists(parent))
    if not _may(folder, os.X_OK):
        return f"{path} cannot be reached: {folder} may not be entered"
    if not os.path.lexists(path):
        return f"{path} cannot be made: {folder} may not be written"
    if actions := [action for right, action in ACTIONS.items() if not _may(path, right)]:
        return f"{path} may not be {' or '.join(actions)}"
    if not _may(folder, os.W_OK):
        return f"{path} cannot be removed or replaced: {folder} may not be written"
    return f"{path} may not be changed"


def _may(path: Path, right: int) -> bool:
    return os.access(path, right, effective_ids=True)
