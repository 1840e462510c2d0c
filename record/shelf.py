"""The sites at hand: those in `sites/`, and those that are generated when first asked for: demo sites into the same
place, pages of a grid into the cache, where they may take much room and are in nobody's way."""

import sys
from contextlib import suppress

from base.errors import EyelevelError
from base.ownership import give_to_caller
from base.places import SITES, cache_dir
from record import grid
from record.demo import DEMO_SITES, generate
from record.site import Site, write_site
from tuning.settings import choose


def recorded() -> list[str]:
    """The names of the sites in `sites/`."""
    return sorted(path.name for path in SITES.glob("[!.]*") if path.is_dir())


def at_hand() -> list[str]:
    """The names of all sites that `take` can give, but for pages of a grid, of which there is any."""
    return list(dict.fromkeys([*recorded(), *DEMO_SITES]))


def take(name: str) -> Site:
    """The site `name`, one of those at hand or a page of a grid. Raises EyelevelError when it is broken."""
    folder = SITES / name
    if page := grid.page_named(name):
        return _take_page(page)
    if name in DEMO_SITES and not folder.is_dir():
        print(f"generating {name}", file=sys.stderr)
        write_site(generate(name), folder)
        give_to_caller(folder, SITES)
    return Site.load(folder)


def _take_page(page: grid.Page) -> Site:
    folder = cache_dir() / "grid" / page.name
    if folder.is_dir():
        # One that is broken is made anew.
        with suppress(EyelevelError):
            site = Site.load(folder)
            if site.recorder == grid.RECORDER:
                return site
    site = write_site(grid.generate(page), folder)
    give_to_caller(folder, cache_dir())
    return site


def choose_sites(wanted: str | list[str]) -> list[Site]:
    """The sites that `wanted` names; demo sites are generated when they are not there yet.

    All are those in sites/, or the demo sites when there is none. Raises EyelevelError.
    """
    if wanted == "all":
        names = recorded() or list(DEMO_SITES)
    else:
        names = choose("site", wanted, {name: name for name in at_hand()})
    return [take(name) for name in names]
