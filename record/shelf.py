"""The sites at hand: those in `sites/`, and the demo sites, which are generated when first asked for."""

import sys

from eyelevel.ownership import give_to_caller
from eyelevel.places import SITES
from record.demo import DEMO_SITES, generate
from record.site import Site, write_site


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
