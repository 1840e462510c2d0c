"""All sites that can be named: the recorded ones in `sites/`, demo sites, and pages of a grid.

Demo sites and pages of a grid are generated when they are first needed. Demo sites go into `sites/`. Pages of a grid go
into the cache, since there may be many and large ones.
"""

import sys
from contextlib import suppress

from base.errors import EyelevelError
from base.ownership import give_to_caller
from base.places import SITES, cache_dir
from record import grid
from record.demo import DEMO_SITES, generate
from record.site import Site, write_site
from tuning.settings import choose, choose_one


def recorded_names() -> list[str]:
    """The names of the sites in `sites/`."""
    return sorted(path.name for path in SITES.glob("[!.]*") if path.is_dir())


def available_names() -> list[str]:
    """The names that `load_site` knows, without those of a grid's pages, whose number has no limit."""
    return list(dict.fromkeys([*recorded_names(), *DEMO_SITES]))


def load_site(name: str) -> Site:
    """The site `name`, an available one or a page of a grid. Raises EyelevelError when it is broken."""
    folder = SITES / name
    if page := grid.page_named(name):
        return _load_page(page)
    if name in DEMO_SITES and not folder.is_dir():
        print(f"generating {name}", file=sys.stderr)
        write_site(generate(name), folder)
        give_to_caller(folder, SITES)
    return Site.load(folder)


def _load_page(page: grid.Page) -> Site:
    folder = cache_dir() / "grid" / page.name
    if folder.is_dir():
        # A broken one is generated again.
        with suppress(EyelevelError):
            site = Site.load(folder)
            if site.recorder == grid.RECORDER:
                return site
    site = write_site(grid.generate(page), folder)
    give_to_caller(folder, cache_dir())
    return site


def choose_site(name: str) -> Site:
    """The one available site `name`. Raises EyelevelError that lists the available ones."""
    return load_site(choose_one("site", name, {name: name for name in available_names()}))


def choose_sites(wanted: str | list[str]) -> list[Site]:
    """The sites that `wanted` names. "all" means those in sites/, or the demo sites when there are none.

    Raises EyelevelError.
    """
    if wanted == "all":
        names = recorded_names() or list(DEMO_SITES)
    else:
        names = choose("site", wanted, {name: name for name in available_names()})
    return [load_site(name) for name in names]
