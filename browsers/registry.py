"""The browsers by name: those of this package, and the builds that users name by path."""

import os
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import browsers
from base.errors import EyelevelError, Misuse
from base.registry import registered
from base.text import printable
from browsers.builds import VARIABLE, build_of, is_build, require_usable
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
    """Every browser of this package, and every build of this process (`browsers.builds`), by its name. Runs none: a
    build was tried when the user named it. Raises Misuse when a text in the environment names no build."""
    builds = [_built(text) for text in os.environ.get(VARIABLE, "").split()]
    return {**all_browsers(), **{build.name: build for build in builds}}


def chosen_browsers(wanted: str) -> list[str]:
    """The names of the `wanted` browsers: names, `all`, or builds, separated by commas or blanks. The builds are known
    from then on. Raises EyelevelError."""
    names = [use_build(word) if is_build(word) else word for word in _words(wanted)]
    try:
        return [browser.name for browser in choose("browser", ",".join(names), known_browsers())]
    except Misuse as fault:
        raise Misuse(f"{fault}; a build of your own: NAME=KIND:/path/to/program") from None


def one_browser(wanted: str) -> str:
    """The name of the one browser that `wanted` names, as for `chosen_browsers`. Raises EyelevelError."""
    name, *others = chosen_browsers(wanted)
    if others:
        raise Misuse(f"only one browser can be named here, not {wanted}")
    return name


def require_named_builds(settings: Iterable[Mapping[str, Any]], wanted: str | None) -> None:
    """Raises Misuse when a campaign, whose browsers have these `settings`, used a build that the user has not named,
    neither in `wanted` nor in the environment: a program runs because its user names it, never because somebody's
    campaign does. Raises EyelevelError when a build that was named cannot be used."""
    for word in filter(is_build, _words(wanted or "")):
        use_build(word)
    named = {str(browser.build) for browser in known_browsers().values()}
    kept = [str(one["build"]) for one in settings if one.get("build")]
    if others := [printable(text) for text in kept if text not in named]:
        raise Misuse(
            f"the campaign was measured with builds of browsers: {', '.join(others)}; name each of them with its "
            "path in BROWSER (--browser) if these programs are here and you trust them"
        )


def _words(wanted: str) -> list[str]:
    return wanted.replace(",", " ").split()


def use_build(text: str) -> str:
    """Make the build that `text` names known to this process and to all that it starts; returns its name. Raises
    EyelevelError."""
    build = build_of(text, all_browsers())
    require_usable(build, text, all_browsers()[build.kind])
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
