"""The names that sites may have; a site's name is also the name of its folder in `sites/`."""

import re
from pathlib import Path

from base.errors import EyelevelError, Misuse
from base.places import SITES
from record.limits import NAME_LETTERS

# Separates the name of a site from that of its variant (`record.edit`).
VARIANT = "@"


def original_of(name: str) -> str:
    """The name of the original if the site `name` is a variant; otherwise `name`."""
    return name.partition(VARIANT)[0]


def require_site_name(name: str, where: str = "") -> str:
    """`name`, if a site may have it. A path could lead out of `sites/`, and a leading dot would hide the folder.

    Raises EyelevelError; its text begins with `where`, the place from which `name` was read.
    """
    if not re.fullmatch(rf"\w[\w.-]{{0,{NAME_LETTERS - 1}}}({VARIANT}[\w.-]{{1,40}})?", name):
        fault = f"{name!r} is not a name for a site; use letters, digits, dots and hyphens"
        raise EyelevelError(f"{where}: {fault}") if where else Misuse(fault)
    return name


def require_new_name(name: str, where: str = "") -> str:
    """`name`, if a new site may have it: that of a generated page, or of a set of them, would hide the site. Raises
    EyelevelError, as `require_site_name` does."""
    from record.page_sources import SETS, SOURCES

    require_site_name(name, where)
    if name in SETS or any(name.startswith(prefix) and page_of(name) for prefix, page_of in SOURCES.items()):
        fault = f"{name!r} is the name of generated pages; choose another name"
        raise EyelevelError(f"{where}: {fault}") if where else Misuse(fault)
    return name


def site_folder(name: str) -> Path:
    """The folder of the new site `name`, whether it exists or not. Raises EyelevelError."""
    return SITES / require_new_name(name)
