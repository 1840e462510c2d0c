"""The sites at hand: those in `sites/`, and those that are generated when they are first needed: demo sites into the
same folder, pages of studies into the cache, since they may take much room."""

import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from base.errors import EyelevelError
from base.ownership import give_to_caller
from base.places import SITES, cache_dir
from record import downloads, grid
from record.demo import DEMO_SITES, generate
from record.site import Recording, Site, write_site
from tuning.settings import choose


def recorded() -> list[str]:
    """The names of the sites in `sites/`."""
    return sorted(path.name for path in SITES.glob("[!.]*") if path.is_dir())


def at_hand() -> list[str]:
    """The names of all sites that `take` can give, without pages of studies, of which there is any."""
    return list(dict.fromkeys([*recorded(), *DEMO_SITES]))


def take(name: str) -> Site:
    """The site `name`, one of those at hand or a page of a study. Raises EyelevelError when it is broken."""
    folder = SITES / name
    if page := grid.page_named(name):
        return _take_generated(cache_dir() / "grid" / name, grid.RECORDER, lambda: grid.generate(page))
    if size_bytes := downloads.page_named(name):
        return _take_generated(
            cache_dir() / "downloads" / name, downloads.RECORDER, lambda: downloads.generate(size_bytes)
        )
    if name in DEMO_SITES and not folder.is_dir():
        print(f"generating {name}", file=sys.stderr)
        write_site(generate(name), folder)
        give_to_caller(folder, SITES)
    return Site.load(folder)


def _take_generated(folder: Path, recorder: dict[str, str], generate_page: Callable[[], Recording]) -> Site:
    if folder.is_dir():
        # One that is broken is made anew.
        with suppress(EyelevelError):
            site = Site.load(folder)
            if site.recorder == recorder:
                return site
    site = write_site(generate_page(), folder)
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
