"""What a site may be called: its name is that of a folder in `sites/`."""

import re
from pathlib import Path

from base.errors import EyelevelError
from base.places import SITES


def checked(name: str, where: str = "") -> str:
    """`name`, if it is one. Raises EyelevelError that begins with `where`: it could lead out of the folder, or hide."""
    if not re.fullmatch(r"\w[\w.-]{0,99}", name):
        told = f"{where}: " if where else ""
        raise EyelevelError(f"{told}{name!r} is no name for a site; use letters, digits, dots and hyphens")
    return name


def place(name: str) -> Path:
    """The folder of the site `name`, whether it is there or not. Raises EyelevelError."""
    return SITES / checked(name)
