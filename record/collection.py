"""All sites that can be named: the recorded ones in `sites/`, demo sites, and pages of studies.

Demo sites and pages of studies are generated when they are first needed. Demo sites go into `sites/`. Pages of studies
go into the cache, since there may be many and large ones.
"""

import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from base.errors import EyelevelError
from base.ownership import give_to_caller
from base.places import SITES, cache_dir
from record import company, downloads, grid
from record.demo import DEMO_SITES, generate
from record.site import Recording, Site, write_site
from record.video import pages as video
from record.video.media import SEGMENT_S
from tuning.settings import choose, choose_one


def recorded_names() -> list[str]:
    """The names of the sites in `sites/`."""
    return sorted(path.name for path in SITES.glob("[!.]*") if path.is_dir())


def available_names() -> list[str]:
    """The names that `load_site` knows, without those of studies' pages, whose number has no limit."""
    return list(dict.fromkeys([*recorded_names(), *DEMO_SITES]))


def load_site(name: str) -> Site:
    """The site `name`, an available one or a page of a study. Raises EyelevelError when it is broken."""
    folder = SITES / name
    if page := grid.page_named(name):
        return _load_generated(cache_dir() / "grid" / name, grid.RECORDER, lambda: grid.generate(page))
    if size_bytes := downloads.page_named(name):
        folder = cache_dir() / "downloads" / name
        return _load_generated(folder, downloads.RECORDER, lambda: downloads.generate(size_bytes))
    if played := video.page_named(name):
        return _load_generated(cache_dir() / "video" / name, video.recorder(played), lambda: _made(name, played))
    if company.mix_named(name):
        return _load_generated(cache_dir() / "fairness" / name, company.RECORDER, company.generate)
    if name in DEMO_SITES and not folder.is_dir():
        print(f"generating {name}", file=sys.stderr)
        write_site(generate(name), folder)
        give_to_caller(folder, SITES)
    return Site.load(folder)


def _made(name: str, played: video.Video) -> Recording:
    size_mb = sum(played.qualities.values()) * played.segments * SEGMENT_S // 8_000_000
    print(f"making {name}: a video of about {size_mb} MB", file=sys.stderr)
    return video.generate(played)


def _load_generated(folder: Path, recorder: dict[str, str], generate_page: Callable[[], Recording]) -> Site:
    if folder.is_dir():
        # A broken one is generated again.
        with suppress(EyelevelError):
            site = Site.load(folder)
            if site.recorder == recorder:
                return site
    site = write_site(generate_page(), folder)
    give_to_caller(folder, cache_dir())
    return site


def choose_site(name: str) -> Site:
    """The one available site `name`. Raises EyelevelError that lists the available ones."""
    return load_site(choose_one("site", name, {name: name for name in available_names()}))


def choose_sites(wanted: str | list[str]) -> list[Site]:
    """The sites that `wanted` names. "all" means those in sites/, or the demo sites when there are none.

    The pages of studies are sites, too, but only by their names. Raises EyelevelError.
    """
    if wanted == "all":
        names = recorded_names() or list(DEMO_SITES)
    else:
        given = wanted.replace(",", " ").split() if isinstance(wanted, str) else wanted
        pages = [name for name in given if grid.page_named(name) or downloads.page_named(name)]
        names = choose("site", wanted, {name: name for name in [*available_names(), *pages]})
    return [load_site(name) for name in names]
