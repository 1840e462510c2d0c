"""All sites that can be named: recorded ones in `sites/`, demo sites, and generated pages (`record.page_sources`).

Demo sites and pages are generated when they are first needed. Demo sites go into `sites/`; pages go into the cache,
since they may be many and large.
"""

import sys
from contextlib import suppress
from pathlib import Path

from base.errors import EyelevelError
from base.files import locked
from base.ownership import give_to_caller
from base.places import SITES, cache_dir
from base.text import unknown
from record.demo import DEMO_SITES, generate
from record.generated import GeneratedSite
from record.page_sources import SETS, SOURCES
from record.site import Site, write_site
from tuning.settings import choose


def recorded_names(folder: Path = SITES) -> list[str]:
    """The names of the sites in `folder`."""
    return sorted(path.name for path in folder.glob("[!.]*") if path.is_dir())


def sites_in(folder: Path, wanted: list[str]) -> list[Site]:
    """The sites in `folder`; only those in `wanted`, unless that is empty. Raises EyelevelError."""
    names = recorded_names(folder)
    chosen = choose("site", wanted, {name: name for name in names}) if wanted else names
    return [Site.load(folder / name) for name in chosen]


def available_names() -> list[str]:
    """The names that `load_site` knows, without generated pages, whose number is unlimited."""
    return list(dict.fromkeys([*recorded_names(), *DEMO_SITES]))


def load_site(name: str) -> Site:
    """The site `name`: an available one, or a generated page. Raises EyelevelError when it is broken."""
    if page := _generated_page(name):
        return _load_generated(*page)
    folder = SITES / name
    if name in DEMO_SITES and not folder.is_dir():
        print(f"generating {name}", file=sys.stderr)
        write_site(generate(name), folder)
        give_to_caller(folder, SITES)
    return Site.load(folder)


def _generated_page(name: str) -> tuple[Path, GeneratedSite] | None:
    """The folder of the page `name` in the cache, and what generates it; None if no source has such a page."""
    for prefix, page_of in SOURCES.items():
        if name.startswith(prefix) and (page := page_of(name)):
            # Checkouts whose pages have other checksums keep them apart: a load may be using the others'.
            return cache_dir() / prefix.strip("-") / page.recorder.get("sha256", "")[:8] / name, page
    return None


def _load_generated(folder: Path, page: GeneratedSite) -> Site:
    if site := _kept(folder, page):
        return site
    folder.parent.mkdir(parents=True, exist_ok=True)
    with locked(folder.parent, wait=True):
        # Another process may have generated it in the meantime.
        if site := _kept(folder, page):
            return site
        site = write_site(page.generate(), folder)
        give_to_caller(folder, cache_dir())
        return site


def _kept(folder: Path, page: GeneratedSite) -> Site | None:
    """The page in the cache's `folder`; None if it is to be generated, as a broken or another one is."""
    if folder.is_dir():
        with suppress(EyelevelError):
            site = Site.load(folder)
            if site.recorder == page.recorder:
                return site
    return None


def choose_site(name: str) -> Site:
    """The available site, or the generated page, that `name` means. Raises EyelevelError."""
    if name not in (names := available_names()) and not _can_be_chosen(name):
        raise EyelevelError(unknown("site", name, names))
    return load_site(name)


def _can_be_chosen(name: str) -> bool:
    """Whether `name` is a generated page that not only its study can load."""
    page = _generated_page(name)
    return page is not None and not page[1].is_for_study


def choose_sites(wanted: str | list[str]) -> list[Site]:
    """The sites that `wanted` names. "all" means those in sites/, or the demo sites if there are none.

    Generated pages can be chosen, too, but only by name, or by that of a set. Raises EyelevelError.
    """
    if wanted == "all":
        names = recorded_names() or list(DEMO_SITES)
    else:
        given = wanted.replace(",", " ").split() if isinstance(wanted, str) else wanted
        given = [one for name in given for one in (SETS[name]() if name in SETS else [name])]
        pages = [name for name in given if _can_be_chosen(name)]
        # Sites are folders, so a missing one is no misuse of the command line: a list, not a text, is chosen from.
        names = choose("site", given, {name: name for name in [*available_names(), *pages]})
    return [load_site(name) for name in names]
