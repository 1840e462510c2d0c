"""The browsers by name: those of this package, and the builds that users name by path."""

import os
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import browsers
from base.errors import EyelevelError, Misuse
from base.registry import registered
from browsers.builds import VARIABLE, build_of, is_build
from browsers.contract import Browser
from tuning.defaults import DEFAULT_BROWSER
from tuning.devices import browser_and_device
from tuning.settings import choose


@cache
def all_browsers() -> Mapping[str, Browser]:
    """Every browser of this package by its name."""
    return registered(browsers, "BROWSER")


def browser_named(name: str) -> Browser:
    """The browser called `name`, which may include a device. Raises EyelevelError when there is none."""
    known = known_browsers()
    name, _ = browser_and_device(name)
    if name not in known:
        raise EyelevelError(f"there is no browser {name!r}; there are {', '.join(known)}")
    return known[name]


def known_browsers() -> Mapping[str, Browser]:
    """Every browser of this package, and every build of this process (`browsers.builds`), by its name. Raises
    EyelevelError when a build cannot be used."""
    builds = [_built(text) for text in os.environ.get(VARIABLE, "").split()]
    return {**all_browsers(), **{build.name: build for build in builds}}


def chosen_browsers(wanted: str) -> list[str]:
    """The names of the `wanted` browsers: names, `all`, or builds, separated by commas or blanks. The builds are known
    from then on. Raises EyelevelError."""
    words = wanted.replace(",", " ").split()
    names = [use_build(word) if is_build(word) else word for word in words]
    return [browser.name for browser in choose("browser", ",".join(names), known_browsers())]


def one_browser(wanted: str) -> str:
    """The name of the one browser that `wanted` names, as for `chosen_browsers`. Raises EyelevelError."""
    name, *others = chosen_browsers(wanted)
    if others:
        raise Misuse(f"only one browser can be named here, not {wanted}")
    return name


def use_kept_builds(settings: Iterable[Mapping[str, Any]]) -> None:
    """Make the builds known that a campaign used: `settings` are those of its browsers. Raises EyelevelError."""
    for one in settings:
        if text := one.get("build"):
            use_build(str(text))


def use_build(text: str) -> str:
    """Make the build that `text` names known to this process and to all that it starts; returns its name. Raises
    EyelevelError."""
    build = _built(text).build
    assert build
    if (other := known_browsers().get(build.name)) is None:
        os.environ[VARIABLE] = f"{os.environ.get(VARIABLE, '')} {build}".strip()
    elif other.build != build:
        again = f"NAME={build.kind}:{build.program}"
        raise EyelevelError(f"{text}: there is already the browser {other.build}; choose another name: {again}")
    return build.name


@cache
def _built(text: str) -> Browser:
    build = build_of(text, all_browsers())
    return type(all_browsers()[build.kind])(build)


def browser_of(folder: Path) -> Browser:
    """A browser of the kind that made the load in `folder`, recognised by its log; the default browser if there is no
    log."""
    made_by = [browser for browser in all_browsers().values() if (folder / browser.network_log).exists()]
    return made_by[0] if made_by else browser_named(DEFAULT_BROWSER)
