"""The sites at hand: those in `sites/`, and the demo sites, which are generated when first asked for."""

import re
import sys
from pathlib import Path

from eyelevel.errors import EyelevelError
from eyelevel.ownership import give_to_caller
from eyelevel.places import SITES
from record.demo import DEMO_SITES, generate
from record.site import Site, write_site


def place(name: str) -> Path:
    """The folder of the site `name`, whether it is there or not. Raises EyelevelError for what is no folder's name."""
    if not re.fullmatch(r"\w[\w.-]{0,99}", name):
        raise EyelevelError(f"{name!r} is no name for a site; use letters, digits, dots and hyphens")
    return SITES / name


def recorded() -> list[str]:
    """The names of the sites in `sites/`."""
    return sorted(path.name for path in SITES.glob("[!.]*") if path.is_dir())


def at_hand() -> list[str]:
    """The names of all sites that `take` can give."""
    return list(dict.fromkeys([*recorded(), *DEMO_SITES]))


def take(name: str) -> Site:
    """The site `name`, one of those at hand. Raises EyelevelError when it is broken."""
    folder = SITES / name
    if name in DEMO_SITES and not folder.is_dir():
        print(f"generating {name}", file=sys.stderr)
        write_site(generate(name), folder)
        give_to_caller(folder, SITES)
    return Site.load(folder)
